"""What is wrong with a table, with the rows it is wrong on."""

from collections import Counter

from .cells import FORMULA, GROUPED, LEADING_ZERO, MONEY, classify, clip

SEVERITIES = ["error", "warning", "note"]


def issue(code, severity, message, count, column=None, examples=()):
    found = {"code": code, "severity": severity, "message": message, "count": count}
    if column is not None:
        found["column"] = clip(column, 120)
    if examples:
        found["examples"] = list(examples)
    return found


def sort_issues(issues):
    return sorted(issues, key=lambda found: (SEVERITIES.index(found["severity"]), -found["count"]))


def table_issues(table):
    issues = []
    for code, count in table.notes:
        if code == "encoding_fallback":
            issues.append(issue(code, "warning", f"the file is not UTF-8; it was read as {table.encoding}", count))
        else:
            issues.append(issue(code, "warning", "the file holds NUL bytes; they were left out", count))
    width = len(table.header)
    ragged = [(number, len(row)) for number, row in enumerate(table.rows, start=1) if len(row) != width]
    if ragged:
        examples = [{"row": number, "value": f"{fields} fields"} for number, fields in ragged[:3]]
        issues.append(issue("ragged_rows", "error", f"rows do not have {width} fields", len(ragged), None, examples))
    if table.has_header:
        issues.extend(header_issues(table))
    repeated = Counter(tuple(row) for row in table.rows)
    extra = sum(count - 1 for count in repeated.values())
    if extra:
        seen, examples = set(), []
        for number, row in enumerate(table.rows, start=1):
            key = tuple(row)
            if key in seen and len(examples) < 3:
                examples.append({"row": number, "value": clip(",".join(row))})
            seen.add(key)
        issues.append(issue("duplicate_rows", "warning", "rows repeat an earlier row exactly", extra, None, examples))
    if table.open_quote:
        issues.append(issue("unclosed_quote", "error", "a quote is never closed, so the last row swallowed what follows it", 1,
                            None, [{"row": len(table.rows), "value": "see the text after the last opening quote"}]))
    if not table.rows:
        issues.append(issue("no_rows", "error", "the file has a header and no rows", 1))
    if table.truncated:
        issues.append(issue("truncated", "note", f"only the first {len(table.rows)} rows were read", 1))
    return issues


def header_issues(table):
    issues = []
    empty = [index for index, name in enumerate(table.header, start=1) if not name]
    if empty:
        issues.append(issue("empty_header", "error", f"columns without a name, first at position {empty[0]}", len(empty)))
    for name, count in Counter(table.header).items():
        if name and count > 1:
            issues.append(issue("duplicate_header", "error", "several columns have this name", count, name))
    typed = [classify(name)[0] for name in table.header if name]
    if typed and all(kind in ("integer", "number", "date", "datetime") for kind in typed):
        issues.append(issue("header_is_data", "warning", "the header looks like data; try has_header false", 1))
    return issues


def column_issues(column):
    issues, name, total = [], column.name, len(column.cells)
    filled = column.filled
    if not total:
        return issues
    if not filled:
        return [issue("empty_column", "warning", "the column holds no values", total, name)]
    if column.null_count > total / 2:
        issues.append(issue("mostly_null", "note", "more than half of the cells are empty", column.null_count, name))
    if len(column.counts) == 1 and filled > 1:
        issues.append(issue("constant_column", "note", "every value is the same", filled, name))
    odd = sum(count for cell, count in column.counts.items() if not column.fits(cell))
    if odd:
        examples = column.rows_where(lambda cell: cell.strip() in column.counts and not column.fits(cell.strip()))
        issues.append(issue("mixed_types", "warning", f"values are not of the column's type {column.type}", odd, name, examples))
    if column.nearly:
        examples = column.rows_where(lambda cell: column.types.get(cell.strip(), ("null",))[0] == "string")
        odd = sum(count for cell, count in column.counts.items() if column.types[cell][0] == "string")
        issues.append(issue("mixed_types", "warning", f"most values are of type {column.nearly}, these are not", odd, name, examples))
    issues.extend(text_issues(column))
    if column.day_first == "ambiguous":
        issues.append(issue("ambiguous_dates", "warning", "day and month cannot be told apart in any value", filled, name,
                            column.rows_where(lambda cell: bool(cell.strip()))))
    elif column.day_first == "mixed":
        issues.append(issue("mixed_date_orders", "error", "some dates put the day first and others the month", filled, name))
    if column.details.get("dates", {}).get("zones") == "some":
        issues.append(issue("mixed_zones", "warning", "some times have a zone and some have none", filled, name))
    outliers = column.details.get("numbers", {}).get("outliers", 0)
    if outliers:
        issues.append(issue("outliers", "note", "values lie far outside the middle half (1.5 times its width)", outliers, name))
    return issues


def text_issues(column):
    issues, name, filled = [], column.name, column.filled
    padded = sum(1 for cell in column.cells if cell is not None and cell != cell.strip() and cell.strip())
    if padded:
        issues.append(issue("stray_whitespace", "warning", "values begin or end with white space", padded, name,
                            column.rows_where(lambda cell: cell != cell.strip() and bool(cell.strip()))))
    formulas = sum(count for cell, count in column.counts.items() if FORMULA.match(cell))
    if formulas:
        issues.append(issue("formula_cells", "warning", "values would run as formulas in a spreadsheet", formulas, name,
                            column.rows_where(lambda cell: bool(FORMULA.match(cell.strip())))))
    if column.leading_zeros:
        issues.append(issue("leading_zeros", "warning", "numbers begin with zero; read them as text to keep it",
                            column.leading_zeros, name, column.rows_where(lambda cell: bool(LEADING_ZERO.match(cell.strip())))))
    if column.type != "string":
        return issues
    numberlike = sum(count for cell, count in column.counts.items() if GROUPED.match(cell) or MONEY.match(cell))
    if numberlike and numberlike >= 0.9 * filled:
        issues.append(issue("number_format", "warning", "numbers carry separators, a currency or a percent sign", numberlike,
                            name, column.rows_where(lambda cell: bool(cell.strip()))))
    folded = {}
    for cell in column.counts:
        folded.setdefault(" ".join(cell.casefold().split()), []).append(cell)
    variants = [sorted(cells) for cells in folded.values() if len(cells) > 1]
    if variants:
        examples = [{"value": clip(" / ".join(cells))} for cells in variants[:3]]
        issues.append(issue("case_variants", "warning", "values differ only in case or spacing", len(variants), name, examples))
    return issues
