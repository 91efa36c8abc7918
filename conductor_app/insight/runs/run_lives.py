"""The lives of a run: a run that is retried, rerun or restarted lives again, with idle time in between."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Q

from ...core.states import RUN
from ...models import HistoryEntry, Run
from .missing_run import time_of_id

MAX_REVISIONS = 20_000
"""Revisions above which the history is not searched."""
MAX_TRANSITIONS = 200
REOPENING = frozenset(
    event for status, event in RUN.moves if status in RUN.final and RUN.after(status, event) in RUN.open
)


@dataclass(frozen=True, slots=True)
class RunLife:
    """One life of a run. `event`: what began it; empty for the first one. `by`: who did.

    `last_revision`: its last decision. `status`: how it ended, or the status of the run if it is open.
    """

    begin: int
    end: int
    last_revision: int
    event: str = ""
    by: str = ""
    status: str = ""

    @property
    def duration_ms(self) -> int:
        return self.end - self.begin


def run_lives(run: Run, now: int) -> list[RunLife]:
    """Return the lives of a run, oldest first. Runs a query if the run may have been reopened; two if it was restarted.

    A restart sets the time of the creation, which the id of the run has as well.
    """
    is_first = not run.last_retried_at and run.created_at == time_of_id(run.pk)
    if is_first or run.revision > MAX_REVISIONS:
        return lives_between((), run, run.created_at, now)
    changes = Q(effects__contains='"TransitionRun"') | Q(effects__contains='"MoveRun"')
    entries = HistoryEntry.objects.filter(changes, run_id=run.pk).order_by("revision", "id")
    rows = list(entries.values_list("revision", "at", "by", "effects")[:MAX_TRANSITIONS])
    begin = run.created_at
    if rows and rows[0][1] < begin:
        begin = HistoryEntry.objects.filter(run_id=run.pk).order_by("revision").values_list("at", flat=True)[0]
    return lives_between(rows, run, begin, now)


def lives_between(rows: Iterable[Sequence[Any]], run: Run, begin: int, now: int) -> list[RunLife]:
    """Return the lives from decisions that changed the status of a run: revision, time, actor and effects of each."""
    end = now if run.ended_at is None else run.ended_at
    lives = [RunLife(begin, end, run.revision, status=run.status)]
    ended: RunLife | None = None
    status = "RUNNING"
    for revision, at, by, effects in rows:
        for event in _run_events(effects):
            status = RUN.after(status, event) if RUN.allows(status, event) else status
            if event in REOPENING and ended is not None:
                lives[-1] = ended
                lives.append(RunLife(at, max(end, at), run.revision, event, by, run.status))
                ended = None
            elif status in RUN.final and ended is None:
                ended = replace(lives[-1], end=max(at, lives[-1].begin), last_revision=revision, status=status)
    return lives


def _run_events(effects: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(line.get("event", "")) for line in effects or () if line.get("effect") == "TransitionRun"]
