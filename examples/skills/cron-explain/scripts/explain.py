#!/usr/bin/env python3
"""Explains cron schedules: flags in, words on standard output, JSON in $SKILL_OUTPUT."""

import argparse
import json
import os
import sys
from datetime import datetime, timezone

from cron.crontab import jobs
from cron.schedule import BadExpression, parse
from cron.times import next_runs
from cron.warnings import warnings
from cron.words import in_words

MAX_SCHEDULES = 100
MAX_RESULT_BYTES = 160 * 1024


class Fault(Exception):
    """What the caller can mend: a stable code and a sentence."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Fault("BAD_ARGUMENT", message)


def read_arguments():
    parser = Parser(prog="explain.py", description=__doc__, allow_abbrev=False)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--expression", action="append", metavar="CRON", help="a schedule; may be given again")
    what.add_argument("--file", metavar="NAME", help="a crontab in $SKILL_INPUT")
    parser.add_argument("--system", action="store_true", help="the crontab has a user column")
    parser.add_argument("--timezone", default="UTC", metavar="ZONE")
    parser.add_argument("--from", dest="start", metavar="TIME", help="2024-03-30 or 2024-03-30T18:00, local; default now")
    parser.add_argument("--count", default="5", metavar="N", help="1 to 50 (default 5)")
    arguments = parser.parse_args()
    if not arguments.count.isascii() or not arguments.count.isdigit() or not 1 <= int(arguments.count[:9]) <= 50:
        raise Fault("BAD_ARGUMENT", "count must be a number from 1 to 50")
    arguments.count = int(arguments.count)
    return arguments


def read_zone(name):
    if name == "UTC":
        return timezone.utc
    try:
        from zoneinfo import ZoneInfo

        return ZoneInfo(name)
    except (ImportError, OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise Fault("UNKNOWN_TIMEZONE", f"the time zone {name!r} is not known here; zones are named like Europe/Berlin") from None


def read_start(text, zone):
    if text is None:
        return datetime.now(zone).replace(tzinfo=None, second=0, microsecond=0)
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M"):
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    raise Fault("BAD_ARGUMENT", f"{text!r} is not a time such as 2024-03-30 or 2024-03-30T18:00")


def read_crontab(name, system):
    root = os.path.realpath(os.environ.get("SKILL_INPUT", "."))
    path = os.path.realpath(os.path.join(root, name))
    if "\0" in name or os.path.commonpath([root, path]) != root or not os.path.isfile(path):
        raise Fault("FILE_NOT_FOUND", f"no input file named {name!r} was sent with the call")
    with open(path, "rb") as source:
        data = source.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Fault("NOT_TEXT", f"{name} is not UTF-8 text") from None
    return list(jobs(text.replace("\r\n", "\n"), system))


def explain(expression, start, zone, count):
    shown = clip(" ".join(expression.split()), 200)
    try:
        schedule = parse(expression)
    except BadExpression as error:
        return {"expression": shown, "valid": False, "error": clip(str(error), 300)}
    runs = [] if schedule.reboot else next_runs(schedule, start, zone, count)
    return {
        "expression": shown,
        "valid": True,
        "words": in_words(schedule),
        "fields": {
            "minute": list(schedule.minute.values),
            "hour": list(schedule.hour.values),
            "day_of_month": list(schedule.day.values),
            "month": list(schedule.month.values),
            "day_of_week": list(schedule.weekday.values),
        } if not schedule.reboot else None,
        "next": runs,
        "warnings": [{"code": code, "message": message} for code, message in warnings(schedule, runs)],
    }


def clip(text, length):
    return text if len(text) <= length else text[: length - 1] + "…"


def printable(text):
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def write_output(value):
    path = os.environ.get("SKILL_OUTPUT")
    if path:
        with open(path, "wb") as out:
            out.write(encode(value))


def encode(value):
    return json.dumps(value, ensure_ascii=False).encode("utf-8", errors="replace")


def main():
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        arguments = read_arguments()
        zone = read_zone(arguments.timezone)
        start = read_start(arguments.start, zone)
        if arguments.file is not None:
            found = read_crontab(arguments.file, arguments.system)
        else:
            found = [(None, expression, "") for expression in arguments.expression]
    except Fault as fault:
        write_output({"error": {"code": fault.code, "message": fault.message}})
        print(f"cron-explain: {fault.message}", file=sys.stderr)
        return 2

    schedules = []
    for line, expression, command in found[:MAX_SCHEDULES]:
        schedule = explain(expression, start, zone, arguments.count)
        if line is not None:
            schedule.update({"line": line, "command": clip(command, 200)})
        schedules.append(schedule)
    result = {"timezone": arguments.timezone, "from": start.isoformat(timespec="minutes"), "schedules": schedules}
    while len(encode(result)) > MAX_RESULT_BYTES and schedules:
        del schedules[len(schedules) // 2 :]
    result["schedules_left_out"] = len(found) - len(schedules)
    write_output(result)
    for schedule in schedules:
        show(schedule)
    if not found:
        print("The crontab has no jobs.")
    return 1 if schedules and not any(schedule["valid"] for schedule in schedules) else 0


def show(schedule):
    where = f"line {schedule['line']}: " if "line" in schedule else ""
    print(f"{where}{printable(schedule['expression'])}")
    if not schedule["valid"]:
        print(f"  cannot be read: {printable(schedule['error'])}")
        return
    print(f"  {schedule['words']}")
    for run in schedule["next"]:
        print(f"  next {run['local']}" + (f" ({run['note']})" if "note" in run else ""))
    for warning in schedule["warnings"]:
        print(f"  warning: {warning['message']}")


if __name__ == "__main__":
    sys.exit(main())
