"""Figures of the overview: runs that take longer than usual."""

from django.db.models import Q

from ...access.visibility import visible
from ...definitions.durations import ENOUGH, TypicalDuration
from ...definitions.models import DurationBaseline
from ...runs.models import Run

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
    late = [(run, usual[run.name, run.version]) for run in found]
    return [(run, each) for run, each in late if each.is_slow(run.duration_ms(now))]
