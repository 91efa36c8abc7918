"""Scopes and periods of budgets. Days, weeks and months are those of UTC; a week begins on Monday."""

from datetime import UTC, datetime, timedelta

from .snapshot import NEVER

RUN, DAY, WEEK, MONTH = "RUN", "DAY", "WEEK", "MONTH"
PERIODS = (RUN, DAY, WEEK, MONTH)

ALL, DEFINITION, CALLER, INTEGRATION, MODEL = "ALL", "DEFINITION", "CALLER", "INTEGRATION", "MODEL"
SCOPES = (ALL, RUN, DEFINITION, CALLER, INTEGRATION, MODEL)


def period_bounds(period: str, now: int) -> tuple[int, int]:
    """Return the begin and the end of the period that contains `now`, in epoch milliseconds.

    The period of a run has no end: from 0 to NEVER.
    """
    if period == RUN:
        return 0, NEVER
    midnight = datetime.fromtimestamp(now / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == DAY:
        begin, end = midnight, midnight + timedelta(days=1)
    elif period == WEEK:
        begin = midnight - timedelta(days=midnight.weekday())
        end = begin + timedelta(days=7)
    else:
        begin = midnight.replace(day=1)
        end = (begin + timedelta(days=32)).replace(day=1)
    return _milliseconds(begin), _milliseconds(end)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000
