"""Who moved a run, and why: the newest decision of its history that did."""

from ..core.effects import effect_name
from ..models import HistoryEntry

LOOKED_AT = 20
"""Decisions that are looked through, the newest first."""


def last_transition(run_id: str, event: str) -> HistoryEntry | None:
    """The newest decision that moved the run by this event."""
    entries = HistoryEntry.objects.filter(run_id=run_id).order_by("-revision")[:LOOKED_AT]
    return next((entry for entry in entries if _has_transition(entry, event)), None)


def _has_transition(entry: HistoryEntry, event: str) -> bool:
    return any(effect_name(line) == "TransitionRun" and line.get("event") == event for line in entry.effects)
