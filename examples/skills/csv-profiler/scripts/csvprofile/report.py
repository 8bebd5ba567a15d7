"""The profile in words, and within the size that a result may have."""

import json

MAX_RESULT_BYTES = 160 * 1024


def shrink(result):
    """Leaves out detail, and says so, until the result is small enough to be returned."""
    if size(result) <= MAX_RESULT_BYTES:
        return result
    result["left_out"] = ["top_values", "examples"]
    for column in result["columns"]:
        column["top_values"] = column["top_values"][:1]
    for found in result["issues"]:
        found.pop("examples", None)
    total_columns, total_issues = len(result["columns"]), len(result["issues"])
    while size(result) > MAX_RESULT_BYTES and (len(result["columns"]) > 1 or len(result["issues"]) > 1):
        result["columns"] = result["columns"][: max(1, len(result["columns"]) * 3 // 4)]
        result["issues"] = result["issues"][: max(1, len(result["issues"]) * 3 // 4)]
        result["columns_left_out"] = total_columns - len(result["columns"])
        result["issues_left_out"] = total_issues - len(result["issues"])
    return result


def size(result):
    return len(json.dumps(result))


def as_text(result):
    source = result["source"]
    more = " (more rows were not read)" if source["truncated"] else ""
    lines = [
        f"{source['name']}: {plural(source['rows'], 'row')}, {plural(source['columns'], 'column')}{more}, "
        f"{source['delimiter']}-separated, {source['encoding']}",
        "",
    ]
    shown = result["columns"][:60]
    width = max([len(one_line(column["name"])) for column in shown] + [6])
    width = min(width, 32)
    lines.append(f"{'column':<{width}}  {'type':<8}  {'nulls':>7}  {'distinct':>8}  details")
    for column in shown:
        name = one_line(column["name"]) or "(no name)"
        name = name if len(name) <= width else name[: width - 1] + "…"
        lines.append(
            f"{name:<{width}}  {column['type']:<8}  {column['nulls']:>7}  {column['distinct']:>8}  {details(column)}".rstrip()
        )
    hidden = source["columns"] - len(shown)
    if hidden > 0:
        lines.append(f"... and {hidden} more columns")
    lines.append("")
    if not result["issues"]:
        lines.append("No problems found.")
    else:
        lines.append(f"{plural(len(result['issues']), 'problem')}:")
    for found in result["issues"][:60]:
        where = f" in {one_line(found['column'])!r}" if "column" in found else ""
        rows = [str(example["row"]) for example in found.get("examples", []) if "row" in example]
        at = f" (rows {', '.join(rows)}{', ...' if found['count'] > len(rows) else ''})" if rows else ""
        lines.append(f"  {found['severity']:<7} {found['code']}{where}: {found['message']}, {plural(found['count'], 'time')}{at}")
    return "\n".join(lines)


def details(column):
    if "numbers" in column:
        numbers = column["numbers"]
        return f"{numbers['min']} .. {numbers['max']}, mean {numbers.get('mean', '?')}, median {numbers.get('median', '?')}"
    if "booleans" in column:
        return f"true {column['booleans']['true']}, false {column['booleans']['false']}"
    if "dates" in column:
        dates = column["dates"]
        return f"{dates['min']} .. {dates['max']}" if "min" in dates else dates.get("order", "")
    if "lengths" in column:
        lengths = column["lengths"]
        return f"length {lengths['min']} .. {lengths['max']}" + (", unique" if column["unique"] else "")
    return ""


def plural(count, noun):
    return f"{count} {noun}" + ("" if count == 1 else "s")


def one_line(value):
    """Safe to print: no line break, no control character."""
    return "".join(character if character.isprintable() else "\ufffd" for character in " ".join(value.split()))
