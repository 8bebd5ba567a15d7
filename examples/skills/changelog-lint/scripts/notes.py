#!/usr/bin/env python3
"""Prints the release notes of one version: notes.py FILE VERSION, where VERSION may be latest or unreleased"""

import sys

from changelog.model import parse
from changelog.skill import Fault, clip, read_text, run, write_output

MAX_NOTES_BYTES = 100_000


def notes(arguments):
    if arguments == ["--help"]:
        print(__doc__)
        return 0
    if len(arguments) != 2:
        raise Fault("BAD_ARGUMENT", "usage: notes.py FILE VERSION")
    name, wanted = arguments
    log = parse(read_text(name))
    release = find(log, wanted)
    markdown = log.body(release)
    if len(markdown.encode("utf-8")) > MAX_NOTES_BYTES:
        raise Fault("NOTES_TOO_LARGE", f"the notes of {clip(release.name, 40)} have more than {MAX_NOTES_BYTES} bytes")
    result = {
        "version": release.name,
        "date": release.date or None,
        "yanked": release.yanked,
        "sections": [
            {"kind": section.name, "entries": [clip(text, 500) for _, text in section.entries][:200]}
            for section in release.sections[:50]
        ],
        "markdown": markdown,
    }
    write_output(result, spare=["sections"])
    print(markdown)
    return 0


def find(log, wanted):
    released = [release for release in log.releases if not release.unreleased]
    for release in log.releases:
        if release.name.casefold() == wanted.casefold() or release.name.casefold() == f"v{wanted}".casefold():
            return release
    if wanted == "latest" and released:
        return released[0]
    known = ", ".join(clip(release.name, 40) for release in log.releases[:20]) or "none"
    raise Fault("VERSION_NOT_FOUND", f"there is no release {wanted!r}; the releases are {known}")


if __name__ == "__main__":
    sys.exit(run(notes))
