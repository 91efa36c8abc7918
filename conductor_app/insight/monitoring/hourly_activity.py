"""Runs started, finished and failed in each of the last 24 hours, and in the same hours a week ago.

Runs four queries that two indexes cover. Their cost depends on the runs of one day, not on all stored runs.
"""

from dataclasses import dataclass

from django.db.models import BigIntegerField, Count, F, Func, Q

from ...models import Run
from ..durations import DAY, HOUR

HOURS = 24
KINDS = ("started", "finished", "completed", "failed")
WEEK = 7 * DAY


@dataclass(frozen=True, slots=True)
class ActivityLine:
    """Counts of one kind of event per hour, current hour last, and the counts of a week ago."""

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
    """Activity of the 24 hours from `since` on."""

    since: int
    lines: list[ActivityLine]

    @property
    def is_silent(self) -> bool:
        return not any(line.total or line.before for line in self.lines)


def hourly_activity(now: int) -> HourlyActivity:
    """Return the activity of the last 24 hours. The last hour ends now, so that all hours have equal length."""
    since = now + 1 - HOURS * HOUR
    today, last_week = _counts_by_kind(since), _counts_by_kind(since - WEEK)
    kinds = zip(KINDS, today, last_week, strict=True)
    return HourlyActivity(since, [ActivityLine(kind, hours, before) for kind, hours, before in kinds])


def _counts_by_kind(since: int) -> list[list[int]]:
    """Return the counts per hour, one list for each kind."""
    started, ended, well, failed = ([0] * HOURS for _ in KINDS)
    for hour, count in _count_by_hour("created_at", since).values_list("hour", "count"):
        started[hour] = count
    by_status = {status.lower(): Count("status", filter=Q(status=status)) for status in ("COMPLETED", "FAILED")}
    rows = _count_by_hour("ended_at", since).annotate(**by_status)
    for hour, *counts in rows.values_list("hour", "count", "completed", "failed"):
        ended[hour], well[hour], failed[hour] = counts
    return [started, ended, well, failed]


def _count_by_hour(moment: str, since: int):
    """Count runs by the hour of a time column."""
    found = Run.objects.filter(**{f"{moment}__gte": since, f"{moment}__lt": since + HOURS * HOUR}).order_by()
    # The numbers are literals: databases do not treat two parameters with one value as the same GROUP BY expression.
    hour = Func(F(moment), template=f"(%(expressions)s - {since:d}) / {HOUR:d}", output_field=BigIntegerField())
    # COUNT(*) instead of COUNT(id), which would read the ids.
    return found.annotate(hour=hour).values("hour").annotate(count=Count("*"))
