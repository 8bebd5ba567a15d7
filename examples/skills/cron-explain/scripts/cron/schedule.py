"""One cron expression, read the way Vixie cron reads it."""

import re
from dataclasses import dataclass

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class BadExpression(Exception):
    """Names the field and what is wrong with it."""


@dataclass(frozen=True)
class Spec:
    name: str
    low: int
    high: int
    names: tuple = ()


SPECS = (
    Spec("minute", 0, 59),
    Spec("hour", 0, 23),
    Spec("day of month", 1, 31),
    Spec("month", 1, 12, tuple(MONTHS)),
    Spec("day of week", 0, 7, tuple(DAYS)),
)


@dataclass(frozen=True)
class Field:
    text: str
    values: tuple  # sorted; Sunday is 0
    star: bool  # begins with *: what decides between AND and OR of the two day fields
    step: int = 0  # of a */n


@dataclass(frozen=True)
class Schedule:
    expression: str
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field
    reboot: bool = False

    @property
    def either_day(self):
        """Both day fields are restricted: cron runs when one of them matches."""
        return not self.day.star and not self.weekday.star

    def runs_on(self, date):
        if date.month not in self.month.values:
            return False
        day = date.day in self.day.values
        weekday = (date.weekday() + 1) % 7 in self.weekday.values
        return day or weekday if self.either_day else day and weekday


def parse(expression):
    text = " ".join(expression.split())
    if text.startswith("@"):
        macro = text.lower()
        if macro == "@reboot":
            everything = [Field("*", tuple(range(spec.low, spec.high + 1)), True) for spec in SPECS]
            return Schedule(text, *everything, reboot=True)
        if macro not in MACROS:
            known = ", ".join([*MACROS, "@reboot"])
            raise BadExpression(f"{text.split()[0]} is not known to cron; the short forms are {known}")
        return build(text, MACROS[macro].split())
    parts = text.split(" ")
    if len(parts) in (6, 7):
        raise BadExpression(
            f"{len(parts)} fields: cron has five and no seconds; leave the first out if this was written for Quartz or Spring"
        )
    if len(parts) != 5:
        raise BadExpression(f"{len(parts)} fields: cron has five, minute, hour, day of month, month, day of week")
    return build(text, parts)


def build(text, parts):
    return Schedule(text, *(read_field(spec, part) for spec, part in zip(SPECS, parts)))


def read_field(spec, text):
    for mark, who in (("?", "Quartz"), ("#", "Quartz"), ("L", "Quartz"), ("W", "Quartz"), ("~", "OpenBSD"), ("H", "Jenkins")):
        if mark in text and not re.search("[A-Za-z]{3}", text):
            raise BadExpression(f"{spec.name}: {mark!r} is understood by {who}, not by cron")
    values, step = set(), 0
    for part in text.split(","):
        values.update(read_part(spec, part))
        if part.startswith("*/"):
            step = int(part[2:])
    if spec.high == 7 and 7 in values:
        values = (values - {7}) | {0}
    return Field(text, tuple(sorted(values)), text.startswith("*"), step if "," not in text else 0)


def read_part(spec, part):
    found = re.fullmatch(r"(\*|[0-9A-Za-z]{1,9})(?:-([0-9A-Za-z]{1,9}))?(?:/([0-9]{1,9}))?", part, re.ASCII)
    if not found or (found[1] == "*" and found[2]):
        raise BadExpression(f"{spec.name}: {part!r} is neither a value, a range such as 1-5, a step such as */5 nor a list")
    step = 1
    if found[3]:
        step = int(found[3])
        if step < 1:
            raise BadExpression(f"{spec.name}: a step must be 1 or more")
    if found[1] == "*":
        # Day 7 of the week is Sunday again; a star means each day once.
        return range(spec.low, (6 if spec.high == 7 else spec.high) + 1, step)
    first = number(spec, found[1])
    if found[2]:
        last = number(spec, found[2])
        if last < first:
            raise BadExpression(
                f"{spec.name}: {part!r} runs backwards; cron does not wrap, write two parts such as "
                f"{first}-{spec.high if spec.high != 7 else 6},{spec.low}-{last}"
            )
        return range(first, last + 1, step)
    if found[3]:
        raise BadExpression(f"{spec.name}: a step needs a range; write {found[1]}-{spec.high if spec.high != 7 else 6}/{step}")
    return [first]


def number(spec, text):
    if text.isdigit():
        value = int(text)
        if not spec.low <= value <= spec.high:
            raise BadExpression(f"{spec.name}: {value} is outside {spec.low} to {spec.high}")
        return value
    if text.lower() in spec.names:
        return spec.names.index(text.lower()) + (1 if spec.name == "month" else 0)
    hint = f"; names are {', '.join(spec.names)}" if spec.names else ""
    raise BadExpression(f"{spec.name}: {text!r} is not a number{hint}")
