"""Caches of parsed definitions, and measured durations.

Resolved definitions, parsed once and cached by their hash.

Measure the typical durations of runs and steps, from the newest completed runs.

Parsed resolved definitions, cached for the pages.
"""

import hashlib
from functools import lru_cache
from typing import Any

from ..core.definition import Definition, RunLimits, path_to_step
from ..core.document.reading import read_definition
from ..db.fields import dumps
from ..db.statements import fetch
from ..payloads.store import OVERHEAD_BYTES
from ..runs.models import Task
from ..settings import conf
from .models import DurationBaseline, ResolvedDefinition


def definitions_revision() -> int:
    """Return a number that every change of a definition increases."""
    rows = fetch("SELECT revision FROM conductor_definitionrevision WHERE id = 1")
    return rows[0][0] if rows else 0


@lru_cache(maxsize=1000)
def load_definition(hash: str) -> Definition:
    """Return the resolved definition with this hash."""
    return parse_document(ResolvedDefinition.objects.get(pk=hash).document, hash)


def parse_document(document: dict[str, Any], hash: str = "") -> Definition:
    """Return the definition of a resolved document."""
    limits = RunLimits(
        conf.max_workflow_depth,
        conf.max_tasks_per_workflow,
        conf.max_loop_iterations,
        conf.max_history_entries,
        max_value_bytes(),
    )
    return read_definition(
        document, hash=hash, publishes_task_events=bool(conf.task_status_listener_url), limits=limits
    )


def max_value_bytes() -> int:
    """Return the maximum size of a value that expressions compose: that of the largest payload."""
    return max(conf.task_payload_max_bytes, conf.workflow_payload_max_bytes) + OVERHEAD_BYTES


def save_definition(document: dict[str, Any], now: int) -> Definition:
    """Store a resolved document, so that runs can follow it, and return its definition."""
    hash = hashlib.sha256((dumps(document) or "").encode()).hexdigest()
    definition = parse_document(document, hash)
    ResolvedDefinition.objects.bulk_create(
        [
            ResolvedDefinition(
                hash=hash, name=definition.name, version=definition.version, document=document, created_at=now
            )
        ],
        ignore_conflicts=True,
    )
    return definition


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


def parsed_definition(hash: str) -> Definition | None:
    """Return the definition with this hash, or None if it is not stored."""
    try:
        return _load_definition(hash)
    except ResolvedDefinition.DoesNotExist:
        return None


@lru_cache(maxsize=200)
def _load_definition(hash: str) -> Definition:
    # A resolved definition never changes, so it can be cached.
    return read_definition(ResolvedDefinition.objects.get(pk=hash).document, hash=hash)


def step_after(hash: str, ref: str) -> str:
    """Return the next step in the same sequence, or an empty text if there is none or `ref` is unknown."""
    definition = parsed_definition(hash)
    path = path_to_step(definition.document.get("tasks") or (), ref) if definition else ()
    return next(iter(path[-1].after), "") if path else ""


def attempts_allowed(definition: Definition | None, task: Task) -> int | None:
    """Return the attempts that the policy of a task allows, or None if the definition does not contain its step."""
    step = definition.step(task.ref) if definition else None
    return step.policy.retries + 1 if step else None
