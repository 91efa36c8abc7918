"""A cron expression in words, where it is one that people say in words."""

from .expression import Cron, parse_cron

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MAX_TIMES = 4
PLAIN = {"@daily": "", "@midnight": "", "@hourly": ""}


def describe_cron(text: str) -> str:
    """Return the expression as a sentence, or "" if the expression itself is easier to read.

    Raises:
        CronRefused: when the text is invalid.
    """
    read = parse_cron(text)
    days = _describe_days(text)
    when = _describe_times(read)
    return f"{when}{days}" if when and days is not None else ""


def _describe_times(read: Cron) -> str:
    if len(read.seconds) > 1:
        return "every second" if len(read.seconds) == 60 and len(read.minutes) == 60 else ""
    if len(read.minutes) > 1:
        step = _even_step(read.minutes, 60)
        return f"every {step} minutes" if step > 1 else "every minute" if step == 1 and len(read.hours) == 24 else ""
    if len(read.hours) == 24:
        return f"every hour, {read.minutes[0]} minutes past" if read.minutes[0] else "every hour, on the hour"
    if len(read.hours) > MAX_TIMES:
        step = _even_step(read.hours, 24)
        return f"every {step} hours, at :{read.minutes[0]:02}" if step else ""
    times = [f"{hour:02}:{read.minutes[0]:02}" for hour in read.hours]
    return f"at {' and '.join(filter(None, (', '.join(times[:-1]), times[-1])))}"


def _even_step(numbers: tuple[int, ...], of: int) -> int:
    """Return the distance between the numbers if it is even all around, otherwise 0."""
    step = numbers[1] - numbers[0]
    return step if numbers == tuple(range(0, of, step)) and of % step == 0 else 0


def _describe_days(text: str) -> str | None:
    """Return the days of the day fields as text; None if they cannot be described."""
    fields = text.split()
    if len(fields) == 1:
        return {**PLAIN, "@weekly": ", on Sunday", "@monthly": ", on day 1 of the month"}.get(fields[0])
    day, month, weekday = fields[-3:]
    if month not in ("*", "?"):
        return None
    if day not in ("*", "?"):
        return f", on day {day} of the month" if day.isdecimal() and weekday in ("*", "?") else None
    return _describe_weekdays(weekday)


def _describe_weekdays(text: str) -> str | None:
    if text in ("*", "?"):
        return ""
    names = {name[:3].upper(): name for name in WEEKDAYS}
    first, _, last = text.upper().partition("-")
    known = {**names, **{str(number): name for number, name in enumerate((*WEEKDAYS, "Sunday"))}}
    if last:
        return f", {known[first]} to {known[last]}" if first in known and last in known else None
    parts = text.upper().split(",")
    if not all(part in known for part in parts):
        return None
    return ", on " + ", ".join(known[part] for part in parts)
