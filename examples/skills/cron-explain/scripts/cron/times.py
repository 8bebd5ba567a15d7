"""When a schedule runs next."""

from datetime import date, datetime, timedelta, timezone

# 29 February on a given weekday comes at most 40 years apart (over a century year without a leap day).
MAX_DAYS = 41 * 366


def next_runs(schedule, start, zone, count):
    """The next runs from the naive local time start on: {local, utc, note?}. Fewer than count when there are no more."""
    found = []
    day = start.date()
    for _ in range(MAX_DAYS):
        if schedule.runs_on(day):
            for hour in schedule.hour.values:
                for minute in schedule.minute.values:
                    moment = datetime(day.year, day.month, day.day, hour, minute)
                    if moment < start:
                        continue
                    found.append(place(moment, zone))
                    if len(found) == count:
                        return found
        if day == date.max:
            break
        day += timedelta(days=1)
    return found


def place(moment, zone):
    """A local time as the clock of the zone shows it: it may be missing there, or come twice."""
    run = {"local": moment.isoformat(timespec="minutes")}
    early, late = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    try:
        utc = early.astimezone(timezone.utc)
        back = utc.astimezone(zone).replace(tzinfo=None)
    except (OverflowError, ValueError):  # the first or last day that there is
        return {**run, "utc": None}
    if back != moment:
        run["utc"] = None
        run["note"] = "this time does not exist: clocks jump over it; most crons skip the run or make up for it at once"
        return run
    run["utc"] = utc.strftime("%Y-%m-%dT%H:%MZ")
    if early.utcoffset() != late.utcoffset():
        run["note"] = "this time comes twice: clocks go back; the first one is shown, some crons run twice"
    return run
