#!/usr/bin/env python3
"""Profile one CSV: input_args as JSON on standard input, result in $SKILL_OUTPUT, words on standard output."""

import json
import os
import sys

from csvprofile.column import profile_column
from csvprofile.issues import table_issues, column_issues, sort_issues
from csvprofile.reading import InputError, read_source, read_table
from csvprofile.report import as_text, shrink

DEFAULT_NULLS = ["", "NA", "N/A", "#N/A", "NULL", "null", "None", "NaN", "nan"]


def read_arguments():
    raw = sys.stdin.buffer.read()
    try:
        arguments = json.loads(raw.decode("utf-8") or "{}")
    except (ValueError, RecursionError) as error:
        raise InputError("BAD_ARGUMENT", f"standard input is not a JSON object: {error}") from None
    if not isinstance(arguments, dict):
        raise InputError("BAD_ARGUMENT", "standard input must be a JSON object")
    if ("file" in arguments) == ("text" in arguments):
        raise InputError("BAD_ARGUMENT", "send exactly one of file and text")
    return arguments


def profile(arguments):
    data = read_source(arguments, os.environ.get("SKILL_INPUT", "."))
    table = read_table(
        data,
        delimiter=arguments.get("delimiter", "auto"),
        encoding=arguments.get("encoding", "auto"),
        has_header=arguments.get("has_header", True),
        max_rows=arguments.get("max_rows", 100_000),
    )
    nulls = {value.strip() for value in arguments.get("null_values", DEFAULT_NULLS)}
    top = arguments.get("top_values", 5)

    columns, issues = [], table_issues(table)
    for index, name in enumerate(table.header):
        column = profile_column(index, name, table.column(index), nulls, top)
        issues.extend(column_issues(column))
        columns.append(column.summary())
    source = {
        "name": arguments.get("file", "text"),
        "bytes": len(data),
        "encoding": table.encoding,
        "delimiter": table.delimiter_name,
        "has_header": table.has_header,
        "rows": len(table.rows),
        "columns": len(table.header),
        "truncated": table.truncated,
    }
    return {"source": source, "columns": columns, "issues": sort_issues(issues)}


def write_output(value):
    path = os.environ.get("SKILL_OUTPUT")
    if path:
        with open(path, "w", encoding="utf-8") as out:
            json.dump(value, out, ensure_ascii=True, allow_nan=False)


def main():
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        result = shrink(profile(read_arguments()))
    except InputError as error:
        write_output({"error": {"code": error.code, "message": error.message}})
        print(f"csv-profiler: {error.message}", file=sys.stderr)
        return 2
    write_output(result)
    print(as_text(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
