"""Cron expressions in English words, by cron-descriptor."""

import re
from functools import lru_cache

from cron_descriptor import ExpressionDescriptor, Options

from ..core.cron import MACROS, parse_cron

FIELD_SIZES = (60, 60, 24, 31, 12, 7)
"""The number of seconds, minutes, hours, days, months and weekdays."""
STEP = re.compile(r"(?:\*|\d+)/(\d+)")
WEEKDAY_OR_MONTH = re.compile("[A-Z]{3}")


@lru_cache(maxsize=1_000)
def describe_cron(text: str) -> str:
    """Return the expression in words, or "" if the library would describe it wrongly.

    Raises:
        CronRefused: when the text is invalid.
    """
    parse_cron(text)
    fields = MACROS.get(text.strip().lower(), text).upper().split()
    if any(map(_is_misread, fields, FIELD_SIZES)):
        return ""
    options = Options()
    options.use_24hour_time_format, options.locale_code = True, "en_US"
    return str(ExpressionDescriptor(" ".join(fields), options).get_full_description())


def _is_misread(field: str, size: int) -> bool:
    """Return True for a list with a rule or a step, and for a step after which less than its length is left."""
    if "," in field:
        return bool(re.search("[LW#/]", WEEKDAY_OR_MONTH.sub("", field)))
    step = STEP.fullmatch(field)
    return step is not None and size % int(step[1]) != 0
