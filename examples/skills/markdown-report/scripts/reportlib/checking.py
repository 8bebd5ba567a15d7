"""What a report must be. Sallyport checks input_args against the schema already; a report in a file was not seen by it."""

import math
import re

from .inline import clean, one_line


class ReportError(Exception):
    """What the caller can mend: a stable code and a sentence that names the place."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


REPORT = {"title", "subtitle", "author", "date", "summary", "contents", "name", "sections"}
SECTION = {"heading", "level", "text", "metrics", "list", "ordered", "table", "chart", "code", "callout"}


def bad(where, fault):
    raise ReportError("BAD_REPORT", f"{where} {fault}")


def an_object(value, where, known, required=()):
    if not isinstance(value, dict):
        bad(where, "must be an object")
    unknown = sorted(set(value) - known)
    if unknown:
        bad(where, f"has the unknown field {unknown[0]!r}; known are {', '.join(sorted(known))}")
    for name in required:
        if name not in value:
            bad(where, f"needs the field {name}")
    return value


def a_list(value, where, most, least=1):
    if not isinstance(value, list):
        bad(where, "must be a list")
    if not least <= len(value) <= most:
        bad(where, f"has {len(value)} items, allowed are {least} to {most}")
    return value


def text(value, where, most=100_000, empty=False):
    if not isinstance(value, str):
        bad(where, "must be text")
    if len(value) > most or not (value.strip() or empty):
        bad(where, f"must hold {0 if empty else 1} to {most} characters")
    return clean(value)


def line(value, where, most=300):
    return one_line(text(value, where, most))


def choice(value, where, allowed):
    if isinstance(value, bool) or value not in allowed:
        bad(where, f"must be one of {', '.join(str(item) for item in allowed)}")
    return value


def flag(value, where):
    if not isinstance(value, bool):
        bad(where, "must be true or false")
    return value


def cell(value, where):
    """A value as it will be shown."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return number(value, where)
    return text(value, where, empty=True)


def number(value, where):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        bad(where, "must be a number")
    try:
        if math.isfinite(value) and abs(value) <= 1e300:
            return f"{value:.12g}" if isinstance(value, float) else str(value)
    except OverflowError:
        pass
    return bad(where, "is out of range")


def check_report(report):
    """A cleaned copy, or a ReportError that names the first fault."""
    an_object(report, "the report", REPORT, ["title", "sections"])
    checked = {}
    for field in ("title", "subtitle", "author", "date"):
        if field in report:
            checked[field] = line(report[field], field)
    if "summary" in report:
        checked["summary"] = text(report["summary"], "summary")
    if "name" in report:
        if not isinstance(report["name"], str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}", report["name"]):
            bad("name", "must be letters, digits, - and _ only, at most 60")
        checked["name"] = report["name"]
    sections = a_list(report["sections"], "sections", 200)
    checked["sections"] = [check_section(item, f"sections[{index}]") for index, item in enumerate(sections)]
    headings = sum(1 for section in checked["sections"] if "heading" in section)
    checked["contents"] = flag(report["contents"], "contents") if "contents" in report else headings >= 4
    return checked


def check_section(section, where):
    an_object(section, where, SECTION)
    if not section:
        bad(where, "is empty")
    checked = {"level": choice(section.get("level", 2), f"{where}.level", [2, 3, 4])}
    if "heading" in section:
        checked["heading"] = line(section["heading"], f"{where}.heading")
    if "text" in section:
        checked["text"] = text(section["text"], f"{where}.text")
    if "metrics" in section:
        checked["metrics"] = [
            check_metric(item, f"{where}.metrics[{index}]")
            for index, item in enumerate(a_list(section["metrics"], f"{where}.metrics", 24))
        ]
    checked["ordered"] = flag(section.get("ordered", False), f"{where}.ordered")
    if "list" in section:
        items = a_list(section["list"], f"{where}.list", 1000)
        checked["list"] = [one_line(text(item, f"{where}.list[{index}]")) for index, item in enumerate(items)]
    if "table" in section:
        checked["table"] = check_table(section["table"], f"{where}.table")
    if "chart" in section:
        checked["chart"] = check_chart(section["chart"], f"{where}.chart")
    if "code" in section:
        code = an_object(section["code"], f"{where}.code", {"text", "language"}, ["text"])
        language = code.get("language", "")
        if not isinstance(language, str) or not re.fullmatch(r"[A-Za-z0-9+#.-]{0,20}", language):
            bad(f"{where}.code.language", "is not the name of a language")
        checked["code"] = {"text": text(code["text"], f"{where}.code.text", empty=True), "language": language}
    if "callout" in section:
        callout = an_object(section["callout"], f"{where}.callout", {"kind", "text"}, ["text"])
        checked["callout"] = {
            "kind": choice(callout.get("kind", "note"), f"{where}.callout.kind", ["note", "tip", "warning", "danger"]),
            "text": text(callout["text"], f"{where}.callout.text"),
        }
    return checked


def check_metric(metric, where):
    an_object(metric, where, {"label", "value", "note"}, ["label", "value"])
    checked = {"label": line(metric["label"], f"{where}.label"), "value": one_line(cell(metric["value"], f"{where}.value"))}
    if "note" in metric:
        checked["note"] = line(metric["note"], f"{where}.note")
    return checked


def check_table(table, where):
    an_object(table, where, {"caption", "columns", "rows"}, ["columns", "rows"])
    columns, checked = [], {}
    if "caption" in table:
        checked["caption"] = line(table["caption"], f"{where}.caption")
    for index, column in enumerate(a_list(table["columns"], f"{where}.columns", 50)):
        place = f"{where}.columns[{index}]"
        if isinstance(column, str):
            column = {"label": column}
        an_object(column, place, {"label", "align"}, ["label"])
        align = choice(column["align"], f"{place}.align", ["left", "right", "center"]) if "align" in column else None
        columns.append({"label": line(column["label"], f"{place}.label"), "align": align})
    rows = []
    for index, row in enumerate(a_list(table["rows"], f"{where}.rows", 5000, least=0)):
        place = f"{where}.rows[{index}]"
        if not isinstance(row, list):
            bad(place, "must be a list of cells")
        if len(row) != len(columns):
            bad(place, f"has {len(row)} cells, the table has {len(columns)} columns")
        rows.append([cell(value, f"{place}[{at}]") for at, value in enumerate(row)])
    for at, column in enumerate(columns):
        if column["align"] is None:  # numbers line up on the right
            values = [row[at] for row in table["rows"] if row[at] is not None]
            numeric = values and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
            column["align"] = "right" if numeric else "left"
    checked.update({"columns": columns, "rows": rows})
    return checked


def check_chart(chart, where):
    an_object(chart, where, {"title", "unit", "bars"}, ["bars"])
    checked = {"unit": one_line(text(chart.get("unit", ""), f"{where}.unit", 20, empty=True)), "bars": []}
    if "title" in chart:
        checked["title"] = line(chart["title"], f"{where}.title")
    for index, bar in enumerate(a_list(chart["bars"], f"{where}.bars", 60)):
        place = f"{where}.bars[{index}]"
        an_object(bar, place, {"label", "value"}, ["label", "value"])
        shown = number(bar["value"], f"{place}.value")
        checked["bars"].append({"label": line(bar["label"], f"{place}.label"), "value": float(bar["value"]), "shown": shown})
    return checked
