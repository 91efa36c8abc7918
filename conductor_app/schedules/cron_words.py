"""Cron expressions in words.

cron-descriptor, which django-celery-beat installs, does not serve here: it rejects `@daily`.
"""

from collections.abc import Sequence
from itertools import pairwise

from django.utils.dates import MONTHS, WEEKDAYS
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from ..core.cron import DAY_OF_MONTH, DAY_OF_WEEK, MACROS, MONTH, Cron, parse_cron, parse_field_entry, replace_names

MAX_TIMES = 6
"""The longest list of times of day. A longer one is described by its minutes and hours."""
MAX_LISTED = 16
"""The longest list of numbers."""
ALL = ("*", "?")
ORDINALS = {
    1: pgettext_lazy("day of a month", "first"),
    2: pgettext_lazy("day of a month", "second"),
    3: pgettext_lazy("day of a month", "third"),
    4: pgettext_lazy("day of a month", "fourth"),
    5: pgettext_lazy("day of a month", "fifth"),
}
MONTH_END_RULES = {
    "L": gettext_lazy("on the last day of the month"),
    "LW": gettext_lazy("on the last weekday of the month"),
}


def describe_cron(text: str) -> str:
    """Return the expression in words, or "" if the expression itself is shorter than its description.

    Raises:
        CronRefused: when the text is invalid.
    """
    cron = parse_cron(text)
    day, month, weekday = MACROS.get(text.strip().lower(), text).upper().split()[3:]
    times, days = _times_of_day(cron), _describe_days(day, month, weekday)
    if days is None:
        return ""
    if times:
        # xgettext does not find calls within f-strings.
        at, every_day = _("at %(times)s") % {"times": _join(times)}, _("every day")
        return f"{at}, {days or every_day}"
    repeats = _describe_repeats(cron)
    return ", ".join(filter(None, (repeats, days))) if repeats else ""


def _times_of_day(cron: Cron) -> list[str]:
    """Return the times of day if they are a short list, otherwise an empty list."""
    hours, minutes = cron.hours, cron.minutes
    if len(cron.seconds) > 1 or len(hours) == 24:
        return []
    is_irregular = len(minutes) == 1 and not _is_range(hours) and not _even_step(hours, 24)
    if not is_irregular and len(minutes) * len(hours) > MAX_TIMES:
        return []
    return [_format_time(hour, minute, cron.seconds[0]) for hour in hours for minute in minutes]


def _describe_repeats(cron: Cron) -> str:
    if len(cron.seconds) == len(cron.minutes) == 1:
        return _describe_hourly(cron)
    if len(cron.seconds) > 1:
        parts = [_describe_seconds(cron.seconds), _describe_minutes_within(cron.minutes), _describe_hours(cron.hours)]
    else:
        parts = [_describe_minutes(cron), _describe_hours(cron.hours)]
    return ", ".join(filter(None, parts)) if None not in parts else ""


def _format_time(hour: int, minute: int, second: int) -> str:
    return f"{hour:02}:{minute:02}:{second:02}" if second else f"{hour:02}:{minute:02}"


def _describe_seconds(seconds: Sequence[int]) -> str | None:
    if len(seconds) == 60:
        return _("every second")
    if step := _even_step(seconds, 60):
        return _("every %(n)s seconds") % {"n": step}
    return _numbers(seconds, _("at seconds %(numbers)s"))


def _describe_minutes_within(minutes: Sequence[int]) -> str | None:
    """Return the minutes in which something happens several times, "" for all."""
    if len(minutes) == 60:
        return ""
    if len(minutes) == 1:
        return _("in minute %(minute)s") % {"minute": minutes[0]}
    return _numbers(minutes, _("in minutes %(numbers)s"))


def _describe_minutes(cron: Cron) -> str | None:
    minutes, second = cron.minutes, cron.seconds[0]
    if len(minutes) == 60:
        text: str | None = _("every minute")
    elif step := _even_step(minutes, 60):
        text = _("every %(n)s minutes") % {"n": step}
    else:
        text = _numbers(minutes, _("in minutes %(numbers)s"))
    return _("%(times)s at second %(second)s") % {"times": text, "second": second} if second and text else text


def _describe_hourly(cron: Cron) -> str:
    """Describe one minute of many hours."""
    minute, hours = _format_time(0, cron.minutes[0], cron.seconds[0])[2:], cron.hours
    is_full = minute == ":00"
    if len(hours) == 24:
        return _("every hour") if is_full else _("every hour at %(minute)s") % {"minute": minute}
    if step := _even_step(hours, 24):
        facts = {"n": step, "minute": minute}
        return _("every %(n)s hours") % facts if is_full else _("every %(n)s hours at %(minute)s") % facts
    span = {"first": f"{hours[0]:02}{minute}", "last": f"{hours[-1]:02}{minute}"}
    return _("every hour from %(first)s to %(last)s") % span


def _describe_hours(hours: Sequence[int]) -> str | None:
    """Return the hours in which something happens several times, "" for all."""
    if len(hours) == 24:
        return ""
    if _is_range(hours):
        return _("from %(first)s to %(last)s") % {"first": f"{hours[0]:02}:00", "last": f"{hours[-1]:02}:59"}
    return _numbers(hours, _("in hours %(numbers)s"))


def _describe_days(day: str, month: str, weekday: str) -> str | None:
    """Return the days on which something happens, "" for all, or None if a description would be too long."""
    of_month, of_week, months = _describe_month_days(day), _describe_weekdays(weekday), _describe_months(month)
    if None in (of_month, of_week, months):
        return None
    if of_month and of_week:
        only = _("%(days)s, but only %(weekdays)s") % {"days": of_month, "weekdays": of_week}
        return ", ".join(filter(None, (only, months)))
    if months and day.isdecimal() and not of_week:
        return _("on day %(day)s of %(months)s") % {"day": int(day), "months": _join(_month_names(month))}
    return ", ".join(filter(None, (of_month, of_week, months)))


def _describe_month_days(text: str) -> str | None:
    if text in ALL:
        return ""
    parts = text.split(",")
    if any(part.startswith("L") or part.endswith("W") for part in parts):
        return _join([_describe_day_rule(part) for part in parts])
    if len(parts) == 1 and "/" in text:
        span, _slash, step = text.partition("/")
        days = parse_field_entry(text, DAY_OF_MONTH)
        if "-" not in span and len(days) > 3 and int(step) > 1:
            return _("every %(n)s days from day %(first)s of the month") % {"n": int(step), "first": days[0]}
    days = sorted({day for part in parts for day in parse_field_entry(part, DAY_OF_MONTH)})
    return "" if len(days) == 31 else _month_days(days)


def _describe_day_rule(part: str) -> str:
    if part in MONTH_END_RULES:
        return str(MONTH_END_RULES[part])
    if part.startswith("L-"):
        return _("%(n)s days before the last day of the month") % {"n": int(part[2:])}
    if part.endswith("W"):
        return _("on the weekday nearest to day %(day)s of the month") % {"day": int(part[:-1])}
    return _month_days(parse_field_entry(part, DAY_OF_MONTH)) or part


def _month_days(days: Sequence[int]) -> str | None:
    if len(days) == 1:
        return _("on day %(day)s of the month") % {"day": days[0]}
    return _numbers(days, _("on days %(numbers)s of the month"))


def _describe_weekdays(text: str) -> str | None:
    if text in ALL:
        return ""
    parts = replace_names(text, DAY_OF_WEEK).split(",")
    if any("#" in part or part.endswith("L") for part in parts):
        return _join([_describe_weekday_rule(part) for part in parts])
    days = sorted({day for part in parts for day in parse_field_entry(part, DAY_OF_WEEK)})
    if len(days) == 7:
        return ""
    if len(days) > 2 and _is_range(days):
        return _("%(first)s to %(last)s") % {"first": _weekday_name(days[0]), "last": _weekday_name(days[-1])}
    return _("on %(weekdays)s") % {"weekdays": _join([_weekday_name(day) for day in days])}


def _describe_weekday_rule(part: str) -> str:
    if part.endswith("L"):
        return _("on the last %(weekday)s of the month") % {"weekday": _weekday_name(int(part[:-1]))}
    weekday, hash_sign, number = part.partition("#")
    if hash_sign:
        ordinal = ORDINALS.get(int(number), f"{int(number)}.")
        facts = {"ordinal": ordinal, "weekday": _weekday_name(int(weekday))}
        return _("on the %(ordinal)s %(weekday)s of the month") % facts
    names = [_weekday_name(day) for day in parse_field_entry(part, DAY_OF_WEEK)]
    return _("on %(weekdays)s") % {"weekdays": _join(names)}


def _describe_months(text: str) -> str:
    names = [] if text in ALL else _month_names(text)
    if len(names) in (0, 12):
        return ""
    return _("in %(months)s") % {"months": _join(names)}


def _month_names(text: str) -> list[str]:
    parts = replace_names(text, MONTH).split(",")
    return [
        str(MONTHS[number]) for number in sorted({each for part in parts for each in parse_field_entry(part, MONTH)})
    ]


def _weekday_name(number: int) -> str:
    """Return the name of a weekday. Sunday is 7, and 0 as well."""
    return str(WEEKDAYS[(number - 1) % 7])


def _numbers(numbers: Sequence[int], text: str) -> str | None:
    """Return the text with the numbers as a range or a list; None if the list is too long."""
    if len(numbers) > 2 and _is_range(numbers):
        return text % {"numbers": _("%(first)s to %(last)s") % {"first": numbers[0], "last": numbers[-1]}}
    return text % {"numbers": _join([str(number) for number in numbers])} if len(numbers) <= MAX_LISTED else None


def _join(texts: Sequence[str]) -> str:
    return get_text_list(list(texts), _("and"))


def _is_range(numbers: Sequence[int]) -> bool:
    return all(after - before == 1 for before, after in pairwise(numbers))


def _even_step(numbers: Sequence[int], of: int) -> int:
    """Return the distance between the numbers if it is even all around, otherwise 0."""
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 0
    return step if step > 1 and tuple(numbers) == tuple(range(0, of, step)) and of % step == 0 else 0
