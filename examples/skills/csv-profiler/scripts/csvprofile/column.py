"""One column: type, nulls, distinct values, statistics."""

import math
from collections import Counter
from dataclasses import dataclass, field

from .cells import LEADING_ZERO, classify, clip

# A column has the type that at least this share of its values fit.
TYPE_SHARE = 0.9
# Whole numbers are codes when at least this share of them begins with a zero.
CODE_SHARE = 0.01
# Fewer values than this say nothing about outliers.
OUTLIER_FLOOR = 10


@dataclass
class Column:
    index: int
    name: str
    cells: list
    nulls: set
    counts: Counter  # of trimmed non-null cells
    types: dict  # trimmed cell -> (type, value)
    type: str = "empty"
    type_share: float = 1.0
    null_count: int = 0
    top: list = field(default_factory=list)
    details: dict = field(default_factory=dict)
    day_first: object = None  # True, False, "ambiguous" or "mixed", for 01/02/2024
    leading_zeros: int = 0
    nearly: str = ""  # what most values of a string column look like

    @property
    def filled(self):
        return sum(self.counts.values())

    def fits(self, cell):
        kind = self.types[cell][0]
        return kind == self.type or (self.type == "number" and kind == "integer") or self.type == "string"

    def values(self):
        """(value, count) of every cell that fits the type."""
        return [(self.types[cell][1], count) for cell, count in self.counts.items() if self.fits(cell)]

    def rows_where(self, wanted, limit=3):
        """The first rows whose raw cell satisfies wanted, as examples."""
        found = []
        for number, cell in enumerate(self.cells, start=1):
            if cell is not None and wanted(cell):
                found.append({"row": number, "value": clip(cell)})
                if len(found) == limit:
                    break
        return found

    def summary(self):
        total = len(self.cells)
        result = {
            "index": self.index,
            "name": clip(self.name, 120),
            "type": self.type,
            "type_share": self.type_share,
            "nulls": self.null_count,
            "null_share": share(self.null_count, total),
            "distinct": len(self.counts),
            "unique": bool(self.counts) and self.null_count == 0 and len(self.counts) == self.filled,
            "top_values": self.top,
        }
        result.update(self.details)
        return result


def share(part, whole):
    return round(part / whole, 4) if whole else 0.0


def profile_column(index, name, cells, nulls, top):
    counts, null_count = Counter(), 0
    for cell in cells:
        trimmed = cell.strip() if cell is not None else ""
        if cell is None or trimmed in nulls:
            null_count += 1
        else:
            counts[trimmed] += 1
    column = Column(index, name, cells, nulls, counts, {cell: classify(cell) for cell in counts})
    column.null_count = null_count
    if not counts:
        return column
    choose_type(column)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    column.top = [{"value": clip(value), "count": count} for value, count in ordered[:top]]
    describe(column)
    return column


def choose_type(column):
    by_type = Counter()
    for cell, count in column.counts.items():
        by_type[column.types[cell][0]] += count
    total = column.filled
    column.leading_zeros = sum(count for cell, count in column.counts.items() if LEADING_ZERO.match(cell))
    if column.leading_zeros >= CODE_SHARE * (by_type["integer"] + column.leading_zeros) > 0:
        by_type["integer"] = 0
    numeric = by_type["integer"] + by_type["number"]
    candidates = [(by_type[kind], kind) for kind in ("integer", "boolean", "date", "datetime")]
    if by_type["number"]:
        candidates[0] = (numeric, "number")
    count, kind = max(candidates)
    if count / total >= TYPE_SHARE:
        column.type, column.type_share = kind, share(count, total)
        if count < total and column.type_share == 1.0:
            column.type_share = 0.9999
    else:
        column.type = "string"
        column.nearly = kind if count >= total / 2 else ""


def describe(column):
    if column.type in ("integer", "number"):
        column.details["numbers"] = describe_numbers(column.values(), column.type)
    elif column.type == "boolean":
        counted = Counter()
        for value, count in column.values():
            counted[value] += count
        column.details["booleans"] = {"true": counted[True], "false": counted[False]}
    elif column.type == "date":
        describe_dates(column)
    elif column.type == "datetime":
        stamps = [value for value, _ in column.values()]
        zoned = sum(1 for stamp in stamps if stamp.tzinfo is not None)
        details = {"zones": "all" if zoned == len(stamps) else "none" if not zoned else "some"}
        if details["zones"] != "some":
            details.update({"min": min(stamps).isoformat(), "max": max(stamps).isoformat()})
        column.details["dates"] = details
    else:
        lengths = sorted((len(value), count) for value, count in column.counts.items())
        total = sum(count for _, count in lengths)
        column.details["lengths"] = {
            "min": lengths[0][0],
            "max": lengths[-1][0],
            "mean": round(sum(length * count for length, count in lengths) / total, 2),
        }


def describe_dates(column):
    values = [value for value, _ in column.values()]
    loose = [value for value in values if isinstance(value, tuple)]
    if loose:
        first_is_day = any(first > 12 for first, _, _ in loose)
        second_is_day = any(second > 12 for _, second, _ in loose)
        if first_is_day and second_is_day:
            column.day_first = "mixed"
        elif first_is_day or second_is_day:
            column.day_first = first_is_day
        else:
            column.day_first = "ambiguous"
    details = {"order": {True: "day first", False: "month first"}.get(column.day_first, column.day_first)
               if loose else "year first"}
    if column.day_first in (None, True, False):
        stamps = [
            value if isinstance(value, str)
            else f"{value[2]:04}-{value[1 if column.day_first else 0]:02}-{value[0 if column.day_first else 1]:02}"
            for value in values
        ]
        details.update({"min": min(stamps), "max": max(stamps)})
    column.details["dates"] = details


def describe_numbers(pairs, kind):
    pairs = sorted(pairs)
    total = sum(count for _, count in pairs)
    try:
        mean = math.fsum(value * count for value, count in pairs) / total
    except OverflowError:  # values near the top of what a float holds
        mean = math.inf
    scale = max(abs(pairs[0][0]), abs(pairs[-1][0])) or 1
    # Scaled so that squares of very large values stay finite.
    variance = math.fsum(((value - mean) / scale) ** 2 * count for value, count in pairs) / max(total - 1, 1)
    low, median, high = (quantile(pairs, total, q) for q in (0.25, 0.5, 0.75))
    reach = 1.5 * (high - low)
    outliers = sum(count for value, count in pairs if value < low - reach or value > high + reach)
    if total < OUTLIER_FLOOR:
        outliers = 0
    result = {
        "min": pairs[0][0],
        "max": pairs[-1][0],
        "mean": tidy(mean),
        "stddev": tidy(math.sqrt(variance) * scale),
        "p25": tidy(low),
        "median": tidy(median),
        "p75": tidy(high),
        "zeros": sum(count for value, count in pairs if value == 0),
        "negative": sum(count for value, count in pairs if value < 0),
        "outliers": outliers,
    }
    if kind == "integer":
        result["sum"] = sum(value * count for value, count in pairs)
    return {key: value for key, value in result.items() if not isinstance(value, float) or math.isfinite(value)}


def quantile(pairs, total, q):
    """Linear interpolation between the two nearest ranks."""
    rank = q * (total - 1)
    low, high = math.floor(rank), math.ceil(rank)
    seen, lower = 0, None
    for value, count in pairs:
        seen += count
        if lower is None and seen > low:
            lower = value
        if seen > high:
            return lower + (value - lower) * (rank - low)
    return pairs[-1][0]


def tidy(value):
    """Ten significant digits: no 0.30000000000000004 in a report."""
    return float(f"{value:.10g}")
