"""Versions of a workflow: author and change note, open runs, failures and durations."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count

from ...core.states import RUN
from ...models import AuditEntry, Run, WorkflowDefinition

SAMPLE = 1_000
"""Newest runs of a workflow that the health of its versions is computed from."""
MAX_OPEN = 10_000
MAX_VERSIONS = 100
BAD_ENDS = ("FAILED", "TIMED_OUT")


@dataclass(frozen=True, slots=True)
class VersionHealth:
    """Results of the newest runs: how many ended and failed, and the 95th percentile of the duration."""

    runs: int = 0
    ended: int = 0
    failed: int = 0
    p95_ms: int | None = None

    @property
    def failure_percent(self) -> int | None:
        return round(100 * self.failed / self.ended) if self.ended else None


@dataclass(frozen=True, slots=True)
class VersionEntry:
    """One version with its change note, open runs and health."""

    row: WorkflowDefinition
    author: str
    reason: str
    at: int
    open_runs: int
    health: VersionHealth
    is_newest: bool


def version_history(name: str) -> list[VersionEntry]:
    """Return all versions of a workflow, newest first. Runs four queries."""
    rows = list(WorkflowDefinition.objects.filter(name=name).order_by("-version")[:MAX_VERSIONS])
    notes, open_counts, health = _change_notes(name), open_runs(name), health_by_version(name)
    return [_build_version_entry(row, notes, open_counts, health, place == 0) for place, row in enumerate(rows)]


def _build_version_entry(row, notes, open_counts, health, is_newest: bool) -> VersionEntry:
    author, reason = notes.get(f"{row.name}:{row.version}", (row.updated_by or row.created_by, ""))
    at = row.updated_at or row.created_at
    return VersionEntry(
        row, author, reason, at, open_counts.get(row.version, 0), health.get(row.version, VersionHealth()), is_newest
    )


def _change_notes(name: str) -> dict[str, tuple[str, str]]:
    """Return the last author and change note of each version."""
    entries = AuditEntry.objects.filter(
        object_type="workflow_definition", object_id__startswith=f"{name}:", action__in=("create", "overwrite")
    ).order_by("at", "pk")
    return {entry.object_id: (entry.actor, entry.reason) for entry in entries}


def open_runs(name: str) -> dict[int, int]:
    """Return the number of open runs of each version."""
    found = Run.objects.open().of_definition(name).order_by().values("version")[:MAX_OPEN]
    counts = Run.objects.filter(pk__in=found.values("pk")).values_list("version").annotate(Count("pk"))
    return dict(counts)


def health_by_version(name: str) -> dict[int, VersionHealth]:
    """Return the health of each version, from the newest runs."""
    rows = Run.objects.of_definition(name).order_by("-created_at")
    found: dict[int, list[tuple[str, int | None]]] = {}
    for version, status, started_at, ended in rows.values_list("version", "status", "created_at", "ended_at")[:SAMPLE]:
        found.setdefault(version, []).append((status, None if ended is None else ended - started_at))
    return {version: health_of_runs(runs) for version, runs in found.items()}


def health_of_runs(runs: Iterable[tuple[str, int | None]]) -> VersionHealth:
    """Return the health from status and duration of each run. The duration of an open run is None."""
    runs = list(runs)
    ended = [(status, duration_ms) for status, duration_ms in runs if status in RUN.final and duration_ms is not None]
    spans = sorted(duration_ms for status, duration_ms in ended if status == "COMPLETED")
    p95 = spans[min(int(len(spans) * 0.95), len(spans) - 1)] if spans else None
    return VersionHealth(len(runs), len(ended), sum(status in BAD_ENDS for status, _took in ended), p95)
