"""Replay of a run's history to one of its revisions, and the lives of a run that was retried, rerun or restarted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q

from ...core.states import ATTEMPT, RUN, TASK, StateMachine
from ..models import HistoryEntry, Run
from .retention import time_of_id

MAX_ENTRIES = 5_000
"""Revisions that a replay reads. Later revisions cannot be shown."""
INITIAL_STATUS, PENDING, ACTIVE = "RUNNING", "PENDING", "ACTIVE"


@dataclass(frozen=True, slots=True)
class TaskAtRevision:
    """One task at a revision. `begin`: when it was created. `end`: when it ended, None if it was open."""

    key: str
    type: str
    status: str
    begin: int = 0
    end: int | None = None


@dataclass(frozen=True, slots=True)
class RunAtRevision:
    """A run at a revision. `unknown`: number of effects missing in the history, so that tasks may be missing."""

    revision: int
    status: str
    tasks: list[TaskAtRevision]
    unknown: int = 0
    at: int = 0


@dataclass
class _Task:
    type: str = ""
    status: str = ACTIVE
    attempt: str = PENDING
    begin: int = 0
    end: int = 0


@dataclass
class _Replay:
    """State of a replay. Each history line changes it by the state tables."""

    status: str = INITIAL_STATUS
    tasks: dict[str, _Task] = field(default_factory=dict)
    unknown: int = 0
    revision: int = 0
    at: int = 0

    def apply_line(self, line: Mapping[str, Any]) -> None:
        kind = line.get("effect")
        if kind == "CreateTask":
            self._create_task(line)
        elif kind == "TransitionRun":
            self.status = _status_after(RUN, self.status, line)
        elif kind == "DeleteTasks":
            keys = line.get("tasks") or []
            self._remove_tasks(keys)
            self.unknown += max(_whole_number(line, "count") - len(keys), 0)
        elif kind == "PruneIteration":
            self._prune_iteration(str(line.get("loop")), _whole_number(line, "iteration"))
        elif kind == "…":
            self.unknown += _whole_number(line, "more")
        elif (task := self.tasks.get(str(line.get("task")))) is not None:
            self._transition_task(task, line)

    def _create_task(self, line: Mapping[str, Any]) -> None:
        attempt = str(line.get("status", PENDING))
        status = str(line.get("becomes") or (ACTIVE if attempt in ATTEMPT.open else _task_status(attempt)))
        self.tasks[str(line.get("task"))] = _Task(str(line.get("type", "")), status, attempt, self.at, self.at)

    def _transition_task(self, task: _Task, line: Mapping[str, Any]) -> None:
        kind = line.get("effect")
        if kind == "OpenAttempt":
            task.attempt = PENDING
        elif kind == "TransitionAttempt":
            task.attempt = _status_after(ATTEMPT, task.attempt, line)
            if line.get("event") == "reopen":
                task.status = ACTIVE
        elif kind == "ResolveTask":
            task.status = _status_after(TASK, task.status, line)
        task.end = self.at

    def _remove_tasks(self, keys: Iterable[Any]) -> None:
        for key in keys:
            self.tasks.pop(str(key), None)

    def _prune_iteration(self, loop: str, iteration: int) -> None:
        """Remove the tasks of one iteration, found by name: `pay__3` and `ship__3__1` belong to the third."""
        above = loop.partition("__")[2]
        ending = f"__{above}__{iteration}" if above else f"__{iteration}"
        self._remove_tasks([key for key in self.tasks if key.endswith(ending) or f"{ending}__" in key])


def _status_after(machine: StateMachine, status: str, line: Mapping[str, Any]) -> str:
    """Return the status after an event. If the history omits events before it, only the event itself counts."""
    event = str(line.get("event", ""))
    if machine.allows(status, event):
        return machine.after(status, event)
    return next((after for (_, move), after in machine.moves.items() if move == event), status)


def _task_status(attempt: str) -> str:
    return {"FAILED_FOR_GOOD": "FAILED", "EXPIRED": "TIMED_OUT"}.get(attempt, attempt)


def _whole_number(line: Mapping[str, Any], name: str) -> int:
    value = line.get(name)
    return value if isinstance(value, int) else 0


def replay_history(entries: Iterable[tuple[int, int, Any]]) -> RunAtRevision:
    """Replay decisions, oldest first, each given by its revision, its time and its history lines."""
    replay = _Replay()
    for replay.revision, replay.at, lines in entries:
        for line in lines or ():
            replay.apply_line(line)
    tasks = [
        TaskAtRevision(key, task.type, task.status, task.begin, None if task.status in TASK.open else task.end)
        for key, task in replay.tasks.items()
    ]
    return RunAtRevision(replay.revision, replay.status, tasks, replay.unknown, replay.at)


def run_at_revision(run_id: str, revision: int) -> RunAtRevision | None:
    """Return a run at a revision, or None if it has no history or more than MAX_ENTRIES revisions up to there."""
    entries = HistoryEntry.objects.filter(run_id=run_id, revision__lte=revision).order_by("revision", "id")
    lines = list(entries.values_list("revision", "at", "effects")[: MAX_ENTRIES + 1])
    return replay_history(lines) if lines and len(lines) <= MAX_ENTRIES else None


MAX_REVISIONS = 20_000
"""Revisions above which the history is not searched."""
MAX_TRANSITIONS = 200
REOPENING = frozenset(
    event for status, event in RUN.moves if status in RUN.final and RUN.after(status, event) in RUN.open
)


@dataclass(frozen=True, slots=True)
class RunLife:
    """One life of a run, from a start or a retry, rerun or restart to its end, or until now."""

    begin: int
    end: int

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
    rows = list(entries.values_list("at", "effects")[:MAX_TRANSITIONS])
    begin = run.created_at
    if rows and rows[0][0] < begin:
        begin = HistoryEntry.objects.filter(run_id=run.pk).order_by("revision").values_list("at", flat=True)[0]
    return lives_between(rows, run, begin, now)


def lives_between(rows: Iterable[tuple[int, Any]], run: Run, begin: int, now: int) -> list[RunLife]:
    """Return the lives from decisions that changed the status of a run: the time and the effects of each."""
    lives: list[RunLife] = []
    ended_at: int | None = None
    status = "RUNNING"
    for at, effects in rows:
        for event in _run_events(effects):
            status = RUN.after(status, event) if RUN.allows(status, event) else status
            if event in REOPENING and ended_at is not None:
                lives.append(RunLife(begin, ended_at))
                begin, ended_at = at, None
            elif status in RUN.final and ended_at is None:
                ended_at = max(at, begin)
    return [*lives, RunLife(begin, max(now if run.ended_at is None else run.ended_at, begin))]


def _run_events(effects: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(line.get("event", "")) for line in effects or () if line.get("effect") == "TransitionRun"]
