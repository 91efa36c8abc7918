"""Measure the typical durations of runs and steps, from the newest completed runs."""

from ..models import DurationBaseline
from .statements import fetch

MAX_RUNS, MAX_ATTEMPTS = 200, 20_000
"""The sample sizes per definition version: large enough for typical values, and fast to read."""
MAX_ENDED = 5_000

MEASURE_STEPS = f"""
WITH sample AS (
    SELECT id, ended_at - created_at AS took FROM conductor_run
    WHERE name = %s AND version = %s AND status = 'COMPLETED' ORDER BY created_at DESC LIMIT {MAX_RUNS}),
worked AS (
    SELECT t.ref AS ref, a.ended_at - a.started_at AS took
    FROM sample s JOIN conductor_attempt a ON a.run_id = s.id JOIN conductor_task t ON t.id = a.task_id
    WHERE a.status = 'COMPLETED' AND a.started_at IS NOT NULL LIMIT {MAX_ATTEMPTS}),
spans AS (SELECT '' AS ref, took FROM sample UNION ALL SELECT ref, took FROM worked),
ranked AS (
    SELECT ref, took, ROW_NUMBER() OVER (PARTITION BY ref ORDER BY took) AS place, COUNT(*) OVER (PARTITION BY ref) AS n
    FROM spans)
SELECT ref, n, MAX(CASE WHEN place = (n + 1) / 2 THEN took END),
    MAX(CASE WHEN place = (n * 95 + 99) / 100 THEN took END)
FROM ranked GROUP BY ref, n
"""
"""Count, median and 95th percentile (nearest rank) of each step, and of the run (empty `ref`)."""


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
