"""The rhythm: runs started, finished and failed in each of the last 24 hours, beside the same hours a week ago.

Four queries over two indexes, which hold all that is counted: they cost what one day brings, not what is kept.
"""

from dataclasses import dataclass

from django.db.models import BigIntegerField, Count, F, Func, Q

from ..models import Run
from .durations import DAY, HOUR

HOURS = 24
KINDS = ("started", "finished", "completed", "failed")
WEEK = 7 * DAY


@dataclass(frozen=True, slots=True)
class ActivityLine:
    """One kind of event: a number for each hour, the running one last; the same a week before."""

    kind: str
    now: list[int]
    week_ago: list[int]

    @property
    def total(self) -> int:
        return sum(self.now)

    @property
    def before(self) -> int:
        return sum(self.week_ago)


@dataclass(frozen=True, slots=True)
class HourlyActivity:
    """24 hours from `since` on."""

    since: int
    lines: list[ActivityLine]

    @property
    def is_silent(self) -> bool:
        return not any(line.total or line.before for line in self.lines)


def hourly_activity(now: int) -> HourlyActivity:
    """The last 24 hours; the last of them ends now, so that it is as long as the others."""
    since = now + 1 - HOURS * HOUR
    today, last_week = _counts_by_kind(since), _counts_by_kind(since - WEEK)
    kinds = zip(KINDS, today, last_week, strict=True)
    return HourlyActivity(since, [ActivityLine(kind, hours, before) for kind, hours, before in kinds])


def _counts_by_kind(since: int) -> list[list[int]]:
    """A list for each kind, with a number for each hour of a day."""
    started, ended, well, failed = ([0] * HOURS for _ in KINDS)
    for hour, count in _count_by_hour("created_at", since).values_list("hour", "count"):
        started[hour] = count
    by_status = {status.lower(): Count("status", filter=Q(status=status)) for status in ("COMPLETED", "FAILED")}
    rows = _count_by_hour("ended_at", since).annotate(**by_status)
    for hour, *counts in rows.values_list("hour", "count", "completed", "failed"):
        ended[hour], well[hour], failed[hour] = counts
    return [started, ended, well, failed]


def _count_by_hour(moment: str, since: int):
    """Runs whose moment lies in the day, by its hours. Counted as rows: a count of ids would read them."""
    found = Run.objects.filter(**{f"{moment}__gte": since, f"{moment}__lt": since + HOURS * HOUR}).order_by()
    # The numbers stand in the statement: databases do not see that two parameters of one value group alike.
    hour = Func(F(moment), template=f"(%(expressions)s - {since:d}) / {HOUR:d}", output_field=BigIntegerField())
    return found.annotate(hour=hour).values("hour").annotate(count=Count("*"))
