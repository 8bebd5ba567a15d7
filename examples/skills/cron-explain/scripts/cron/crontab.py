"""The job lines of a crontab file."""

import re


def jobs(text, system):
    """(line number, expression, command) of every job. Comments and settings such as MAILTO=... are left out."""
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip()
        if not line or line.startswith("#") or re.match(r"[A-Za-z_][A-Za-z0-9_]*[ \t]*=", line):
            continue
        words = line.split(None, 1 if line.startswith("@") else 5)
        fields = 1 if line.startswith("@") else 5
        expression, rest = " ".join(words[:fields]), words[fields] if len(words) > fields else ""
        if system:
            rest = "".join(rest.split(None, 1)[1:])
        yield number, expression, rest
