"""What one cell is: its type, and its value when it has one."""

import re
from datetime import date, datetime, timedelta, timezone

INTEGER = re.compile(r"[+-]?\d{1,40}\Z", re.ASCII)
NUMBER = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?\Z", re.ASCII)
LEADING_ZERO = re.compile(r"[+-]?0\d+\Z", re.ASCII)
GROUPED = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d+)\Z", re.ASCII)
MONEY = re.compile(r"(?:[$€£¥]\s?[+-]?[\d.,]+|[+-]?[\d.,]+\s?[$€£¥%])\Z")
ISO_DATE = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})\Z", re.ASCII)
DAY_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})\Z", re.ASCII)
ISO_TIME = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?\s?(?:(Z)|([+-])(\d{2}):?(\d{2}))?\Z",
    re.ASCII,
)
BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "t": True, "f": False, "y": True, "n": False}
FORMULA = re.compile(r"(?:[=@]|[+-](?=[A-Za-z(])).")


def is_date(year, month, day):
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def classify(cell):
    """(type, value) of a trimmed cell: integer, number, boolean, date, datetime or string."""
    if INTEGER.match(cell):
        if LEADING_ZERO.match(cell):
            return "string", cell  # a code such as 00420: a number would lose its zeros
        return "integer", int(cell)
    if NUMBER.match(cell):
        value = float(cell)
        if value in (float("inf"), float("-inf")):
            return "string", cell
        return "number", value
    if cell.lower() in BOOLEANS:
        return "boolean", BOOLEANS[cell.lower()]
    found = ISO_DATE.match(cell)
    if found:
        year, month, day = (int(part) for part in found.groups())
        return ("date", f"{year:04}-{month:02}-{day:02}") if is_date(year, month, day) else ("string", cell)
    found = DAY_DATE.match(cell)
    if found:
        first, second, year = int(found[1]), int(found[3]), int(found[4])
        if is_date(year, second, first) or is_date(year, first, second):
            return "date", (first, second, year)  # which one is the day is decided for the whole column
        return "string", cell
    found = ISO_TIME.match(cell)
    if found:
        try:
            return "datetime", moment(found)
        except ValueError:
            return "string", cell
    return "string", cell


def moment(found):
    """The datetime that ISO_TIME matched, aware when it names a zone; ValueError when there is none."""
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    micros = int((found[7] or "0").ljust(6, "0")[:6])
    zone = None
    if found[8]:
        zone = timezone.utc
    elif found[9]:
        offset = timedelta(hours=int(found[10]), minutes=int(found[11]))
        zone = timezone(-offset if found[9] == "-" else offset)
    return datetime(year, month, day, hour, minute, second, micros, zone)


def clip(value, length=80):
    """A value short enough to show."""
    return value if len(value) <= length else value[: length - 1] + "…"
