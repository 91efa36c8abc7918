"""Metrics of the overview: the last hour compared with a week ago, and runs that take longer than usual."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...models import DurationBaseline, Run
from ..definitions.duration_baselines import ENOUGH, TypicalDuration
from ..durations import HOUR
from .run_activity import WEEK

WORDS = {"started": gettext_lazy("started"), "completed": gettext_lazy("completed"), "failed": gettext_lazy("failed")}
MAX_DEFINITIONS, MAX_RUNS = 40, 8
FEW = 10
"""Below this count, the overview shows the number of last week instead of a percentage."""


@dataclass(frozen=True, slots=True)
class OverviewMetric:
    """A count of the last hour and of the same hour a week ago.

    `asked`: filter of the run list for these runs; `is_bad`: True if a higher count is worse.
    """

    word: Any
    now: int
    week_ago: int
    asked: dict[str, str]
    is_bad: bool = False

    @property
    def change(self) -> str:
        """Return the comparison with the last week as text."""
        if self.now == self.week_ago:
            return _("same as last week")
        if self.week_ago < FEW:
            return _("vs. %(count)s last week") % {"count": self.week_ago}
        return _("%(change)s %% vs. last week") % {"change": f"{100 * (self.now - self.week_ago) / self.week_ago:+.0f}"}

    @property
    def is_worse(self) -> bool:
        """True if the count needs attention."""
        return self.is_bad and self.now > max(2 * self.week_ago, 3)


def overview_metrics(now: int) -> list[OverviewMetric]:
    """Return the metrics of the last hour: runs started, completed and failed. Runs two queries."""
    since = now + 1 - HOUR
    counts = {"started": _count_hours("created_at", since)["all"]}
    counts |= _count_hours("ended_at", since, completed=Q(status="COMPLETED"), failed=Q(status="FAILED"))
    filters = {"started": {"started_since": str(since)}}
    filters |= {status.lower(): {"status": status, "ended_since": str(since)} for status in ("COMPLETED", "FAILED")}
    return [OverviewMetric(word, *counts[kind], filters[kind], is_bad=kind == "failed") for kind, word in WORDS.items()]


def _count_hours(column: str, since: int, **groups: Q) -> dict[str, tuple[int, int]]:
    """Count the runs of each group in the hour from `since` on, and in the same hour a week before."""
    hours = {"now": since, "before": since - WEEK}
    within = {name: Q(**{f"{column}__gte": at, f"{column}__lt": at + HOUR}) for name, at in hours.items()}
    counts = {
        f"{group}_{name}": Count(column, filter=hour & condition)
        for group, condition in {"all": Q(), **groups}.items()
        for name, hour in within.items()
    }
    found = Run.objects.filter(within["now"] | within["before"]).aggregate(**counts)
    return {group: (found[f"{group}_now"], found[f"{group}_before"]) for group in ("all", *groups)}


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
        Run.objects.defer_payloads()
        .defer("domains")
        .filter(overdue, status="RUNNING")
        .order_by("created_at")[:MAX_RUNS]
    )
    return [(run, usual[run.name, run.version]) for run in found]
