#!/usr/bin/env python3
"""Render a report: the report as JSON on standard input, report.md and report.html in $SKILL_ARTIFACTS."""

import json
import os
import sys

from reportlib.checking import ReportError, check_report
from reportlib.html import to_html
from reportlib.markdown import to_markdown


def no_duplicates(pairs):
    """A report with a key given twice would lose one of the two in silence."""
    found = {}
    for key, value in pairs:
        if key in found:
            raise ReportError("BAD_REPORT", f"the key {key!r} is given twice in one object")
        found[key] = value
    return found


def no_constants(name):
    raise ReportError("BAD_REPORT", f"{name} is not a JSON number")


def parse(data, what):
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=no_duplicates, parse_constant=no_constants)
    except UnicodeDecodeError as error:
        raise ReportError("BAD_ARGUMENT", f"{what} is not UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise ReportError("BAD_ARGUMENT", f"{what} is not JSON: {error}") from None


def read_report():
    report = parse(sys.stdin.buffer.read() or b"{}", "standard input")
    if isinstance(report, dict) and "file" in report:
        if set(report) != {"file"}:
            raise ReportError("BAD_ARGUMENT", "send either file or the report itself, not both")
        name = report["file"]
        root = os.path.realpath(os.environ.get("SKILL_INPUT", "."))
        if not isinstance(name, str) or "\0" in name:
            raise ReportError("BAD_ARGUMENT", "file must be the name of an input file")
        path = os.path.realpath(os.path.join(root, name))
        if os.path.commonpath([root, path]) != root or not os.path.isfile(path):
            raise ReportError("FILE_NOT_FOUND", f"no input file named {name!r} was sent")
        with open(path, "rb") as source:
            report = parse(source.read(), name)
    return report


def write(folder, name, text):
    data = text.encode("utf-8", errors="replace")
    with open(os.path.join(folder, name), "wb") as out:
        out.write(data)
    return {"path": name, "bytes": len(data)}


def write_output(value):
    path = os.environ.get("SKILL_OUTPUT")
    if path:
        with open(path, "w", encoding="utf-8") as out:
            json.dump(value, out, ensure_ascii=True, allow_nan=False)


def main():
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        report = check_report(read_report())
    except ReportError as error:
        write_output({"error": {"code": error.code, "message": error.message}})
        print(f"markdown-report: {error.message}", file=sys.stderr)
        return 2
    folder, name = os.environ.get("SKILL_ARTIFACTS", "."), report.get("name", "report")
    files = [write(folder, f"{name}.md", to_markdown(report)), write(folder, f"{name}.html", to_html(report))]
    sections = report["sections"]
    outline = [section["heading"] for section in sections if "heading" in section]
    tables = [section["table"] for section in sections if "table" in section]
    write_output({
        "files": files,
        "title": report["title"],
        "outline": outline[:50],
        "sections": len(sections),
        "tables": len(tables),
        "rows": sum(len(table["rows"]) for table in tables),
        "charts": sum(1 for section in sections if "chart" in section),
    })
    for file in files:
        print(f"wrote {file['path']} ({file['bytes']} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
