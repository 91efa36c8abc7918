"""Simulated runs: their scripts and their progress."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..snapshot import NEVER, Attempt, Run, Task
from ..states import PENDING


@dataclass(frozen=True, slots=True)
class TaskMock:
    """Outcome of one attempt, its time in the queue and its execution time."""

    outcome: str = "COMPLETED"
    output: dict[str, Any] = field(default_factory=dict)
    queue_ms: int = 0
    work_ms: int = 0


@dataclass(frozen=True, slots=True)
class SimulationScript:
    """Mocks of a run: by reference, one for each attempt in order; and the scripts of its children.

    `branches`: by the reference of a dynamic fork, the mocks of each of its tasks that has no mock of its own.
    """

    mocks: Mapping[str, Sequence[TaskMock]] = field(default_factory=dict)
    children: Mapping[str, "SimulationScript"] = field(default_factory=dict)
    branches: Mapping[str, Sequence[TaskMock]] = field(default_factory=dict)


class SimulationCue(NamedTuple):
    """Times at which an open attempt is claimed and reported on, and its mock."""

    claimed_at: int
    reported_at: int
    mock: TaskMock


@dataclass(slots=True)
class SimulatedRun:
    """One simulated run, with all of its attempts and the cues of the open ones."""

    run: Run
    script: SimulationScript
    attempts: dict[str, tuple[Attempt, Task]] = field(default_factory=dict)
    cues: dict[str, SimulationCue] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    passed: set[tuple[str, int]] = field(default_factory=set)  # expired timers that had no effect

    def cue(self, task: Task) -> TaskMock | None:
        """Return the next mock of the task's key, its reference or its dynamic fork; None if there is none left."""
        for name in (str(task.key), task.key.ref):
            if (mock := self._next_mock(name, self.script.mocks.get(name, ()))) is not None:
                return mock
        mocks = (
            self.script.branches.get(self._dynamic_fork_of(task), ())
            if self.script.branches and task.branch_head
            else ()
        )
        return self._next_mock(f"branch {task.key}", mocks)

    def _next_mock(self, name: str, mocks: Sequence[TaskMock]) -> TaskMock | None:
        used = self.used.get(name, 0)
        if used >= len(mocks):
            return None
        self.used[name] = used + 1
        return mocks[used]

    def _dynamic_fork_of(self, task: Task) -> str:
        """Return the reference of the dynamic fork that created a task."""
        forks = (
            each for each in self.run.tasks.values() if each.branch_head is None and task.key.ref in each.branch_steps
        )
        return next((fork.key.ref for fork in forks), "")


def next_times(part: SimulatedRun, now: int) -> Iterable[int]:
    """Yield the times of events that happen by themselves: cues, and timers of the engine."""
    if part.run.wake_at <= now:
        # A long decision stopped halfway, or the run's timer has expired.
        yield part.run.wake_at
    for task in part.run.open_tasks:
        attempt = task.attempt
        if attempt.id in part.cues:
            cue = part.cues[attempt.id]
            yield cue.claimed_at if attempt.status == PENDING else cue.reported_at
        elif not attempt.queue and (attempt.status == PENDING or attempt.ends_at != NEVER):
            yield from _attempt_due_times(part, attempt)


def timer_times(part: SimulatedRun) -> Iterable[int]:
    """Yield the times at which timers of the run or of its open attempts expire."""
    if part.run.wake_at != NEVER:
        yield part.run.wake_at
    for task in part.run.open_tasks:
        yield from _attempt_due_times(part, task.attempt)


def _attempt_due_times(part: SimulatedRun, attempt: Attempt) -> Iterable[int]:
    if attempt.is_open and attempt.due_at != NEVER and (attempt.id, attempt.due_at) not in part.passed:
        yield attempt.due_at
