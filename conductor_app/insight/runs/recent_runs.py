"""The newest runs of several workflows or schedules, for history strips."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import Q

from ...models import Run

STRIP_LENGTH = 30
COLUMNS = ("id", "version", "status", "created_at", "ended_at", "next_seq")


@dataclass(frozen=True, slots=True)
class RecentRun:
    """One run of a strip. `next_seq`: a bound of the number of its attempts."""

    id: str
    version: int
    status: str
    created_at: int
    ended_at: int | None
    next_seq: int

    def duration_ms(self, now: int) -> int:
        """Return the time from start to end, or until now if the run is open."""
        return max((now if self.ended_at is None else self.ended_at) - self.created_at, 0)


def recent_runs_of_workflows(names: Sequence[str]) -> dict[str, list[RecentRun]]:
    """Return the newest runs of each workflow, oldest first. Runs one query, with one index look-up per name."""
    return _recent_runs("name", names)


def recent_runs_of_schedules(names: Sequence[str]) -> dict[str, list[RecentRun]]:
    """Return the newest runs of each schedule, oldest first. Runs one query, with one index look-up per name."""
    return _recent_runs("schedule", names)


def _recent_runs(column: str, names: Sequence[str]) -> dict[str, list[RecentRun]]:
    """Combine one limited query per name: a compound query may not contain limits, but subqueries of its parts may."""
    parts: list[str] = []
    params: list[str | int] = []
    for name in dict.fromkeys(filter(None, names)):
        # The second condition is that of the index.
        rows = Run.objects.filter(Q(**{column: name}) & ~Q(**{column: ""})).order_by("-created_at")
        sql, values = rows.values_list(column, *COLUMNS)[:STRIP_LENGTH].query.sql_with_params()
        parts.append(f"SELECT * FROM ({sql}) AS newest")
        params += values
    found: dict[str, list[RecentRun]] = {}
    if parts:
        with connection.cursor() as cursor:
            cursor.execute(" UNION ALL ".join(parts), params)
            for name, *values in cursor.fetchall():
                found.setdefault(name, []).append(RecentRun(*values))
    return {name: sorted(runs, key=lambda run: (run.created_at, run.id)) for name, runs in found.items()}
