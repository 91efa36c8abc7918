"""What is written for a run that is played, and how far it has come."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..snapshot import NEVER, Attempt, Run, Task
from ..states import PENDING


@dataclass(frozen=True, slots=True)
class TaskMock:
    """What one attempt comes to, how long it waits for a worker before, and how long that takes."""

    outcome: str = "COMPLETED"
    output: dict[str, Any] = field(default_factory=dict)
    queue_ms: int = 0
    work_ms: int = 0


@dataclass(frozen=True, slots=True)
class SimulationScript:
    """What is written for a run: by reference, what its attempts come to one after another; and for its children.

    `branches`: by the reference of a dynamic fork, the same of each task that it makes and nothing else is written for.
    """

    mocks: Mapping[str, Sequence[TaskMock]] = field(default_factory=dict)
    children: Mapping[str, "SimulationScript"] = field(default_factory=dict)
    branches: Mapping[str, Sequence[TaskMock]] = field(default_factory=dict)


class SimulationCue(NamedTuple):
    """When an open attempt is claimed, when it is reported on, and what it then comes to."""

    claimed_at: int
    reported_at: int
    mock: TaskMock


@dataclass(slots=True)
class SimulatedRun:
    """One run of a play, with all attempts that it has had, and what is still to be heard of those that are open."""

    run: Run
    script: SimulationScript
    attempts: dict[str, tuple[Attempt, Task]] = field(default_factory=dict)
    cues: dict[str, SimulationCue] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    passed: set[tuple[str, int]] = field(default_factory=set)  # clocks that ran out without a consequence

    def cue(self, task: Task) -> TaskMock | None:
        """What the task's attempt comes to, taken from the script: of its turn, else of its reference or its fork."""
        for name in (str(task.key), task.key.ref):
            if (mock := self._next_mock(name, self.script.mocks.get(name, ()))) is not None:
                return mock
        written = (
            self.script.branches.get(self._dynamic_fork_of(task), ())
            if self.script.branches and task.branch_head
            else ()
        )
        return self._next_mock(f"branch {task.key}", written)

    def _next_mock(self, name: str, written: Sequence[TaskMock]) -> TaskMock | None:
        used = self.used.get(name, 0)
        if used >= len(written):
            return None
        self.used[name] = used + 1
        return written[used]

    def _dynamic_fork_of(self, task: Task) -> str:
        """The reference of the dynamic fork that has made a task."""
        forks = (
            each for each in self.run.tasks.values() if each.branch_head is None and task.key.ref in each.branch_steps
        )
        return next((fork.key.ref for fork in forks), "")


def next_times(part: SimulatedRun, now: int) -> Iterable[int]:
    """When something happens by itself: what is written, and what the engine does without anybody."""
    if part.run.wake_at <= now:
        # It stopped in the middle of a long decision, or its time is over.
        yield part.run.wake_at
    for task in part.run.open_tasks:
        attempt = task.attempt
        if attempt.id in part.cues:
            cue = part.cues[attempt.id]
            yield cue.claimed_at if attempt.status == PENDING else cue.reported_at
        elif not attempt.queue and (attempt.status == PENDING or attempt.ends_at != NEVER):
            yield from _attempt_due_times(part, attempt)


def timer_times(part: SimulatedRun) -> Iterable[int]:
    """When a clock of the run, or of what is open in it, runs out."""
    if part.run.wake_at != NEVER:
        yield part.run.wake_at
    for task in part.run.open_tasks:
        yield from _attempt_due_times(part, task.attempt)


def _attempt_due_times(part: SimulatedRun, attempt: Attempt) -> Iterable[int]:
    if attempt.is_open and attempt.due_at != NEVER and (attempt.id, attempt.due_at) not in part.passed:
        yield attempt.due_at
