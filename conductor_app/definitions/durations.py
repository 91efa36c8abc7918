"""Typical durations of runs and steps: measured from the newest completed runs, and compared on the pages."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Max, Q
from django.utils.translation import gettext as _

from ..db.statements import fetch
from ..runs.models import Run
from ..utils import clock
from ..utils.formatting import SECOND, format_duration
from .models import DurationBaseline

ENOUGH = 3
MAX_RUNS, MAX_ATTEMPTS = 200, 20_000
"""The sample sizes per definition version: large enough for typical values, and fast to read."""
MAX_ENDED = 5_000
MEASURE_STEPS = f"""
WITH sample AS (
    SELECT id, ended_at - created_at - idle_ms AS took FROM conductor_run
    WHERE name = %s AND version = %s AND status = 'COMPLETED' ORDER BY created_at DESC LIMIT {MAX_RUNS}),
worked AS (
    SELECT t.ref AS ref, a.ended_at - a.started_at AS took, s.id AS run
    FROM sample s JOIN conductor_attempt a ON a.run_id = s.id JOIN conductor_task t ON t.id = a.task_id
    WHERE a.status = 'COMPLETED' AND a.started_at IS NOT NULL LIMIT {MAX_ATTEMPTS}),
spans AS (SELECT '' AS ref, took, id AS run FROM sample UNION ALL SELECT ref, took, run FROM worked),
ranked AS (
    SELECT ref, took, run,
        ROW_NUMBER() OVER (PARTITION BY ref ORDER BY took) AS place, COUNT(*) OVER (PARTITION BY ref) AS n
    FROM spans)
SELECT ref, n, MAX(CASE WHEN place = (n + 1) / 2 THEN took END),
    MAX(CASE WHEN place = (n * 95 + 99) / 100 THEN took END)
FROM ranked GROUP BY ref, n HAVING ref = '' OR COUNT(DISTINCT run) >= {ENOUGH}
"""
"""Count, median and 95th percentile (nearest rank) of each step, and of the run (empty `ref`).

Iterations of a loop are samples of their step, but those of a few runs say nothing about others.
"""
AT_FIRST_MS = 7 * 86_400_000
"""The period that the first pass covers."""


@dataclass(frozen=True, slots=True)
class TypicalDuration:
    """Median and 95th percentile of a duration, in milliseconds."""

    count: int
    p50: int
    p95: int

    def __str__(self) -> str:
        return f"p50 {format_duration(self.p50)} · p95 {format_duration(self.p95)}"

    @property
    def sentence(self) -> str:
        facts = {"durations": self, "count": self.count}
        return _("typical duration: %(durations)s (%(count)s samples)") % facts

    def is_slow(self, duration_ms: int) -> bool:
        """Return True if a duration is well above the baseline."""
        return duration_ms > self.p95 and duration_ms > self.p50 * 2 and duration_ms - self.p50 > SECOND


def typical_step_durations(name: str, version: int) -> dict[str, TypicalDuration]:
    """Return the typical durations of a definition version, by step reference. The run itself has the reference ''."""
    rows = DurationBaseline.objects.filter(name=name, version=version, count__gte=ENOUGH)
    return {row.ref: TypicalDuration(row.count, row.p50_ms, row.p95_ms) for row in rows}


def typical_run_durations(runs: Iterable[Run]) -> dict[tuple[str, int], TypicalDuration]:
    """Return the typical run durations for the definitions of these runs. Runs one query."""
    wanted = {(run.name, run.version) for run in runs}
    if not wanted:
        return {}
    found = Q()
    for name, version in wanted:
        found |= Q(name=name, version=version)
    rows = DurationBaseline.objects.filter(found, ref="", count__gte=ENOUGH)
    return {(row.name, row.version): TypicalDuration(row.count, row.p50_ms, row.p95_ms) for row in rows}


def update_duration_baselines(limit: int) -> int:
    """Measure up to `limit` definition versions whose runs completed since the last pass. Returns how many."""
    now = clock.now()
    last = DurationBaseline.objects.aggregate(at=Max("measured_at"))["at"]
    changed = versions_ended_since(last if last is not None else now - AT_FIRST_MS, limit)
    return sum(measure_version(name, version, now) > 0 for name, version in changed)


def versions_ended_since(moment: int, limit: int) -> list[tuple[str, int]]:
    """Return the definition versions with runs that completed after a moment in epoch milliseconds."""
    newest = (
        f"SELECT name, version, status FROM conductor_run WHERE ended_at > %s ORDER BY ended_at DESC LIMIT {MAX_ENDED}"
    )
    rows = fetch(f"SELECT DISTINCT name, version FROM ({newest}) n WHERE status = 'COMPLETED' LIMIT {limit}", [moment])
    return [(name, version) for name, version in rows]


def measure_version(name: str, version: int, now: int) -> int:
    """Measure one definition version and store the result. Returns the number of measured steps."""
    rows = [
        DurationBaseline(name=name, version=version, ref=ref, count=count, p50_ms=p50, p95_ms=p95, measured_at=now)
        for ref, count, p50, p95 in fetch(MEASURE_STEPS, [name, version])
    ]
    DurationBaseline.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["name", "version", "ref"],
        update_fields=["count", "p50_ms", "p95_ms", "measured_at"],
        batch_size=500,
    )
    return len(rows)
