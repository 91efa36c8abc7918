"""Metrics of the overview: the last hour compared with a week ago, and runs that take longer than usual."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...models import DurationBaseline, Run
from ..definitions.duration_baselines import ENOUGH, TypicalDuration
from ..durations import HOUR
from .hourly_activity import HourlyActivity

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


def overview_metrics(found: HourlyActivity, now: int) -> list[OverviewMetric]:
    """Return the metrics of the last hour: runs started, completed and failed."""
    since = str(now + 1 - HOUR)
    filters = {"started": {"started_since": since}}
    filters |= {status.lower(): {"status": status, "ended_since": since} for status in ("COMPLETED", "FAILED")}
    return [
        OverviewMetric(WORDS[line.kind], line.now[-1], line.week_ago[-1], filters[line.kind], line.kind == "failed")
        for line in found.lines
        if line.kind in WORDS
    ]


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
