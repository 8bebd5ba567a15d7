"""A schedule in plain words."""

MONTH_NAMES = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
               "November", "December"]
DAY_NAMES = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]


def in_words(schedule):
    if schedule.reboot:
        return "once, when the system starts"
    parts = [times(schedule.minute, schedule.hour)]
    days = day_words(schedule)
    if days:
        parts.append(days)
    elif parts[0].startswith("at ") and parts[0][3:5].isdigit():
        parts.append("every day")
    if len(schedule.month.values) < 12:
        parts.append("in " + join(runs(schedule.month.values, lambda value: MONTH_NAMES[value - 1])))
    return ", ".join(parts)


def times(minute, hour):
    minutes, hours = minute.values, hour.values
    if len(minutes) * len(hours) <= 6:
        return "at " + join([f"{at:02}:{past:02}" for at in hours for past in minutes])
    if len(minutes) == 60:
        past = "every minute"
    elif minute.step and 60 % minute.step == 0 and minutes[0] == 0:
        past = f"every {minute.step} minutes"
    elif minutes == (0,):
        past = "on the hour"
    else:
        past = ("at minute " if len(minutes) == 1 else "at minutes ") + join(runs(minutes, str))
    if len(hours) == 24:
        return past if len(minutes) == 60 or past.startswith("every") else f"{past} of every hour"
    if hour.step and 24 % hour.step == 0 and hours[0] == 0:
        return f"{past} of every {ordinal(hour.step)} hour (from 00)"
    listed = join(runs(hours, lambda value: f"{value:02}"))
    return f"{past} of the {'hour' if len(hours) == 1 else 'hours'} {listed}"


def day_words(schedule):
    days = ""
    if len(schedule.day.values) < 31:
        days = ("on day " if len(schedule.day.values) == 1 else "on days ") + join(runs(schedule.day.values, str)) + " of the month"
    weekdays = ""
    if len(schedule.weekday.values) < 7:
        ordered = sorted(schedule.weekday.values, key=lambda value: (value + 6) % 7)  # Monday first
        weekdays = "on " + join(runs([(value + 6) % 7 for value in ordered], lambda value: DAY_NAMES[(value + 1) % 7]))
    if days and weekdays:
        return f"{days} {'or' if schedule.either_day else 'if that is'} {weekdays}"
    if schedule.either_day:
        return ""  # one of the two names every day, so every day matches
    return days or weekdays


def runs(values, name):
    """The names of values, three or more in a row as "a to b"."""
    out, index = [], 0
    values = list(values)
    while index < len(values):
        end = index
        while end + 1 < len(values) and values[end + 1] == values[end] + 1:
            end += 1
        if end - index >= 2:
            out.append(f"{name(values[index])} to {name(values[end])}")
        else:
            out.extend(name(value) for value in values[index : end + 1])
        index = end + 1
    return out


def join(items):
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def ordinal(number):
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
