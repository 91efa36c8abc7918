"""HUMAN: waits for a person."""

from collections.abc import Iterator

from ..decision_context import Knowledge
from ..definition import Key, Step
from ..effects import Effect, MoveAttempt, ResolveTask
from ..people import ends_at, question
from ..snapshot import NEVER, Task
from .base import Kind, held_by_engine, inputs_of

UNANSWERED = "The last assignment expired before the task was completed."


class Human(Kind):
    """Stays open until somebody reports on it (execution §8.14)."""

    type = "HUMAN"
    hears_outside = True

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, know, key, know.run, now)
        asked = question(inputs)
        end = ends_at(asked.assignees, now) if asked.terminates else None
        yield held_by_engine(step, key, know.run, now, input=inputs, output={}, ends_at=NEVER if end is None else end)

    def settle(self, task: Task, know: Knowledge, now: int) -> Iterator[Effect]:
        if task.attempt.is_open and task.attempt.ends_at <= now:
            yield MoveAttempt(task.key, "expire", now, {"reason": UNANSWERED})
            yield ResolveTask(task.key, "time_out")
