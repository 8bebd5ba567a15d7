#!/usr/bin/env python3
"""Lints a changelog: lint.py FILE [--strict] [--no-links] [--release=VERSION]"""

import sys

from changelog.model import parse
from changelog.rules import lint
from changelog.skill import Fault, clip, read_text, run, write_output

MAX_PROBLEMS = 300  # reported one by one; the counts are of all


def lint_file(arguments):
    options = [argument for argument in arguments if argument.startswith("--")]
    names = [argument for argument in arguments if not argument.startswith("--")]
    if options == ["--help"]:
        print(__doc__)
        return 0
    if len(names) != 1:
        raise Fault("BAD_ARGUMENT", "usage: lint.py FILE [--strict] [--no-links] [--release=VERSION]")
    strict, links, release = False, True, None
    for option in options:
        if option == "--strict":
            strict = True
        elif option == "--no-links":
            links = False
        elif option.startswith("--release="):
            release = option.partition("=")[2]
        else:
            raise Fault("BAD_ARGUMENT", f"unknown option {option!r}; the options are --strict, --no-links and --release=VERSION")

    log = parse(read_text(names[0]))
    problems = [
        {"rule": rule, "severity": severity, "line": line, "message": clip(message, 300)}
        for rule, severity, line, message in lint(log, links, release)
    ]
    errors = sum(1 for problem in problems if problem["severity"] == "error")
    result = {
        "ok": errors == 0,
        "errors": errors,
        "warnings": len(problems) - errors,
        "problems": problems[:MAX_PROBLEMS],
        "problems_left_out": max(0, len(problems) - MAX_PROBLEMS),
        "versions": [
            {"version": clip(release.name, 60), "date": clip(release.date, 20), "line": release.line, "yanked": release.yanked}
            for release in log.releases[:300]
        ],
    }
    write_output(result, spare=["versions", "problems"])
    for problem in result["problems"]:
        print(f"{names[0]}:{problem['line']}: {problem['severity']}: {printable(problem['message'])} ({problem['rule']})")
    if result["problems_left_out"]:
        print(f"... and {result['problems_left_out']} more")
    print(f"{len(log.releases)} releases, {errors} errors, {result['warnings']} warnings")
    return 1 if strict and errors else 0


def printable(text):
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


if __name__ == "__main__":
    sys.exit(run(lint_file))
