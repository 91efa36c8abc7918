"""HUMAN: waits for a person."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect, ResolveTask, TransitionAttempt
from ..human_task import last_assignment_ends_at, parse_question
from ..snapshot import NEVER, Task
from .base import StepType, engine_held_task, resolve_inputs

UNANSWERED_REASON = "The last assignment expired before the task was completed."


class Human(StepType):
    """Stays open until a person, a client or a worker reports on it (execution §8.14)."""

    type = "HUMAN"
    icon = "human"
    is_forked_by_type = True
    result_comes_from_outside = True
    is_completed_externally = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        question = parse_question(inputs)
        end = last_assignment_ends_at(question.assignees, now) if question.terminates else None
        yield engine_held_task(step, key, ctx.run, now, input=inputs, output={}, ends_at=NEVER if end is None else end)

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if task.attempt.is_open and task.attempt.ends_at <= now:
            yield TransitionAttempt(task.key, "expire", now, {"reason": UNANSWERED_REASON})
            yield ResolveTask(task.key, "time_out")
