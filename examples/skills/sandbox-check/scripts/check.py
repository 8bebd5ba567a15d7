#!/usr/bin/env python3
"""Checks a sandbox from the inside: check.py [--strict]. Changes nothing and sends nothing."""

import json
import os
import sys

# Before anything else is imported or opened: which descriptors did we inherit?
INHERITED = sorted(int(name) for name in os.listdir("/proc/self/fd") if name.isdigit()) if os.path.isdir("/proc/self/fd") else []

from probes import files, kernel, surroundings  # noqa: E402


def checks():
    """(name, verdict, sentence): a verdict is True, False or None when it cannot be told."""
    yield from kernel.checks()
    yield from surroundings.checks(INHERITED)
    yield from files.checks()


def main():
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    arguments = sys.argv[1:]
    if arguments not in ([], ["--strict"]):
        print("sandbox-check: usage: check.py [--strict]", file=sys.stderr)
        write_output({"error": {"code": "BAD_ARGUMENT", "message": "the only argument is --strict"}})
        return 2
    words = {True: "pass", False: "fail", None: "unknown"}
    found = [{"name": name, "result": words[verdict], "found": sentence} for name, verdict, sentence in checks()]
    count = {word: sum(1 for check in found if check["result"] == word) for word in words.values()}
    write_output({
        "results": {check["name"]: check["result"] for check in found},
        "passed": count["pass"],
        "failed": count["fail"],
        "unknown": count["unknown"],
        "checks": found,
        "facts": {**kernel.facts(), **surroundings.facts(INHERITED), **files.facts()},
    })
    for check in found:
        print(f"{check['result']:<7} {check['name']}: {check['found']}")
    print(f"{count['pass']} passed, {count['fail']} failed, {count['unknown']} unknown")
    return 1 if arguments and count["fail"] else 0


def write_output(value):
    path = os.environ.get("SKILL_OUTPUT")
    if path:
        with open(path, "w", encoding="utf-8") as out:
            json.dump(value, out, ensure_ascii=True)


if __name__ == "__main__":
    sys.exit(main())
