"""Lookup of the last decision in a run's history that changed its status by an event."""

from ...models import HistoryEntry

SEARCHED_ROWS = 20
"""Decisions that are searched, newest first."""


def last_transition(run_id: str, event: str) -> HistoryEntry | None:
    """Return the newest decision that applied this event to the run, or None."""
    entries = HistoryEntry.objects.filter(run_id=run_id).order_by("-revision")[:SEARCHED_ROWS]
    return next((entry for entry in entries if _has_transition(entry, event)), None)


def _has_transition(entry: HistoryEntry, event: str) -> bool:
    return any(line.get("effect") == "TransitionRun" and line.get("event") == event for line in entry.effects)
