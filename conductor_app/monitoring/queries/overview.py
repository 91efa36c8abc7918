"""Figures of the overview: the activity compared with a week ago, and runs that take longer than usual.

Each range takes two queries that read one index each, and at most MAX_COUNTED rows of it, newest first.
"""

from dataclasses import dataclass

from django.db.models import Q

from ...access.visibility import visible
from ...definitions.durations import ENOUGH, TypicalDuration
from ...definitions.models import DurationBaseline
from ...runs.models import Run
from ...utils.formatting import DAY, MONTH_RANGE, TimeRange, count_by_bar

KINDS = ("started", "finished", "failed")
WEEK = 7 * DAY
MAX_COUNTED = 200_000
"""Newest runs that are counted. Reading this number of entries of an index takes less than 100 ms."""


@dataclass(frozen=True, slots=True)
class ActivityLine:
    """Counts of one kind of event per bar of the range, and the counts of the earlier range."""

    kind: str
    now: list[int]
    earlier: list[int]

    @property
    def total(self) -> int:
        return sum(self.now)

    @property
    def before(self) -> int:
        return sum(self.earlier)


@dataclass(frozen=True, slots=True)
class RunActivity:
    """Activity of a range. `shift_ms`: how much earlier the other range is; `is_cut`: True if not all was counted."""

    time_range: TimeRange
    shift_ms: int
    lines: list[ActivityLine]
    is_cut: bool

    @property
    def is_silent(self) -> bool:
        return not any(line.total or line.before for line in self.lines)


def run_activity(time_range: TimeRange) -> RunActivity:
    """Return the activity of a range and of the one a week before. A month is compared with the month before."""
    shift = time_range.length_ms if time_range.name == MONTH_RANGE else WEEK
    counted, earlier = _counts_by_kind(time_range), _counts_by_kind(time_range.shifted(shift))
    kinds = zip(KINDS, counted, earlier, strict=True)
    is_cut = any(sum(counts[place]) >= MAX_COUNTED for counts in (counted, earlier) for place in (0, 1))
    return RunActivity(time_range, shift, [ActivityLine(kind, now, before) for kind, now, before in kinds], is_cut)


def _counts_by_kind(time_range: TimeRange) -> list[list[int]]:
    """Return the counts per bar, one list for each kind."""
    started, ended, failed = ([0] * time_range.count for _ in KINDS)
    for place, count in _count_runs("created_at", time_range):
        started[place] = count
    for place, status, count in _count_runs("ended_at", time_range, "status"):
        ended[place] += count
        if status == "FAILED":
            failed[place] = count
    return [started, ended, failed]


def _count_runs(column: str, time_range: TimeRange, *groups: str) -> list[tuple]:
    """Count the newest runs of the range by the bar that a time column is in."""
    inside = {f"{column}__gte": time_range.since, f"{column}__lt": time_range.until}
    newest = visible(Run.objects.filter(**inside)).order_by(f"-{column}")
    return count_by_bar(newest.values(column, *groups)[:MAX_COUNTED], time_range, groups)


MAX_DEFINITIONS, MAX_RUNS = 40, 8


def overdue_runs(now: int) -> list[tuple[Run, TypicalDuration]]:
    """Return open runs that take much longer than typical, oldest first. Runs two queries."""
    rows = DurationBaseline.objects.filter(ref="", count__gte=ENOUGH).order_by("-measured_at")[:MAX_DEFINITIONS]
    usual = {(row.name, row.version): TypicalDuration(row.count, row.p50_ms, row.p95_ms) for row in rows}
    if not usual:
        return []
    overdue = Q()
    for (name, version), each in usual.items():
        overdue |= Q(name=name, version=version, created_at__lt=now - max(2 * each.p95, each.p95 + 60_000))
    found = (
        visible(Run.objects.defer_payloads())
        .defer("domains")
        .filter(overdue, status="RUNNING")
        .order_by("created_at")[:MAX_RUNS]
    )
    return [(run, usual[run.name, run.version]) for run in found]
