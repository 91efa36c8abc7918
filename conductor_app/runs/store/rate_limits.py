"""The rows that the rate limit of a workflow definition counts. `runs/commands/rate_limits.py` has its rules."""

from django.db.models import QuerySet

from ...db.statements import serialize
from ..models import Run as RunRow


def set_rate_limit(run_id: str, key: str, is_held: bool) -> None:
    """Set the rate limit key of a run that has not started, and whether the limit holds the run back."""
    RunRow.objects.filter(pk=run_id, next_seq=1).update(limit_key=key, is_held=is_held)


def is_rate_limit_reached(name: str, key: str, limit: int, but: str = "") -> bool:
    """Return True if a run that starts now must wait. Starts with the same key are serialized until the commit.

    `but`: a run that is not counted.
    """
    serialize(f"runs:{name}:{key}")
    return count_admitted_runs(name, key, but) >= limit or held_runs(name, key).exists()


def held_runs(name: str, key: str) -> QuerySet[RunRow]:
    """Return the runs that a rate limit holds, earliest first. They start before new runs."""
    return RunRow.objects.open().filter(name=name, limit_key=key, is_held=True).order_by("created_at", "id")


def count_admitted_runs(name: str, key: str, but: str = "") -> int:
    """Return the number of open runs with a rate limit key that the limit does not hold."""
    return RunRow.objects.open().filter(name=name, limit_key=key, is_held=False).exclude(pk=but).count()
