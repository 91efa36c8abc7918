"""Time zones by name, as clients spell them: Europe/Berlin, UTC, GMT+2, +02:00."""

import re
from datetime import UTC, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from ..errors import Invalid

OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?([0-5]\d))?", re.ASCII)
MAX_HOURS = 18


@lru_cache(maxsize=1000)
def parse_zone(name: str) -> tzinfo:
    """Return the time zone with this name.

    Raises:
        Invalid: when there is none.
    """
    if name in ("Z", "UTC", "GMT", "UT", ""):
        return UTC
    if found := OFFSET.fullmatch(name):
        return _offset(name, *found.groups())
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise Invalid(f"Unknown time zone '{name[:100]}'. Use a name such as Europe/Berlin.") from None


def _offset(name: str, sign: str, hours: str, minutes: str | None) -> tzinfo:
    ahead = timedelta(hours=int(hours), minutes=int(minutes or 0))
    if ahead > timedelta(hours=MAX_HOURS):
        raise Invalid(f"The offset of time zone '{name}' is more than {MAX_HOURS} hours from UTC.")
    return timezone(ahead if sign == "+" else -ahead)
