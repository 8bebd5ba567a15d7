"""The classic mistakes."""

from .words import MONTH_NAMES


def warnings(schedule, runs):
    """(code, message) pairs. runs are the next runs, to tell a schedule that never comes."""
    if schedule.reboot:
        return
    if not runs:
        yield "never", "no such date comes: check the day of month against the month"
        return
    if len(schedule.minute.values) == 60 and len(schedule.hour.values) < 24:
        hours = schedule.hour.text
        yield "every_minute", f"runs 60 times in each hour of {hours}; for once an hour write 0 as the minute"
    if schedule.either_day:
        every = [name for name, field, size in (("day of month", schedule.day, 31), ("day of week", schedule.weekday, 7)) if len(field.values) == size]
        if every:
            yield "day_or_weekday", f"the {every[0]} names every day, so the other day field has no effect: cron runs when either matches"
        else:
            yield "day_or_weekday", "day of month and day of week are both set: cron runs when either matches, not when both do"
    if not schedule.either_day and len(schedule.day.values) < 31 and len(schedule.weekday.values) < 7:
        yield "star_step_days", "a day field that begins with * makes cron demand both days; other schedulers take either"
    for name, field, size in (("minute", schedule.minute, 60), ("hour", schedule.hour, 24)):
        if not field.step or field.step == 1:
            continue
        if field.step >= size:
            yield "large_step", f"{name}: */{field.step} is larger than the field, so only {field.values[0]} matches"
        elif size % field.step:
            gap = size - field.values[-1]
            yield "uneven_step", f"{name}: */{field.step} starts again at 0, so the last gap is {gap} {name}s and not {field.step}"
    if schedule.day.step > 1 and not (schedule.day.step >= 31):
        yield "uneven_step", f"day of month: */{schedule.day.step} starts again on the 1st, so the gap at the end of a month is shorter"
    yield from short_months(schedule)
    if any(run.get("note", "").startswith("this time does not exist") for run in runs):
        yield "clock_change", "a run falls into the hour that is left out when clocks go forward"
    if any(run.get("note", "").startswith("this time comes twice") for run in runs):
        yield "clock_change", "a run falls into the hour that comes twice when clocks go back"


# Months with fewer than 31 days, February as it mostly is.
SHORT = {2: 28, 4: 30, 6: 30, 9: 30, 11: 30}


def short_months(schedule):
    first = min(schedule.day.values)
    if not schedule.weekday.star or first <= 28:
        return
    if schedule.month.values == (2,):
        yield "leap_day", "29 February comes in leap years only"
        return
    missing = [month for month, days in SHORT.items() if first > days and month in schedule.month.values]
    if missing:
        names = ", ".join(MONTH_NAMES[month - 1] for month in missing)
        yield "short_months", f"day {first} does not come in {names}" + (" of most years" if first == 29 else "")
