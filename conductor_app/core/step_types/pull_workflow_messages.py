"""PULL_WORKFLOW_MESSAGES: consumes messages that clients sent to the run."""

from collections.abc import Iterator
from typing import Any, cast

from ..data_requests import InboxMessages
from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import ConsumeMessages, Effect
from ..snapshot import Task
from ..step_state import TaskState
from .base import StepType, complete_task, engine_held_task, resolve_inputs
from .field_checks import whole_number

MAX_AT_ONCE = 100


class PullState(TaskState, total=False):
    """State of a pull. `takes`: maximum number of messages. `blocks`: wait for a message if there is none."""

    takes: int
    blocks: bool


class PullWorkflowMessages(StepType):
    """Completes with the oldest messages; without any, it waits if it is blocking (execution §8.23).

    Waiting tasks take turns, the earliest first. Each receives the messages that the one before it left.
    """

    type = "PULL_WORKFLOW_MESSAGES"
    icon = "message"
    result_comes_from_outside = True
    is_completed_externally = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        blocks = str(inputs.get("blocking", True)).lower() != "false"
        step_state: PullState = {"takes": batch_size(inputs.get("batchSize")), "blocks": blocks}
        yield engine_held_task(step, key, ctx.run, now, input=inputs, output={}, step_state=step_state)

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        run, state = ctx.run, cast(PullState, task.step_state)
        if not run.inbox:
            if not state["blocks"]:
                yield from complete_task(task, now, {"messages": [], "count": 0})
            return
        first = min(run.tasks_of_type(self.type), key=lambda other: other.seq)
        if first.key != task.key:
            return
        batch = ctx.require(InboxMessages(state["takes"], run.inbox_taken))
        yield ConsumeMessages(batch.up_to, batch.left)
        if batch.messages:
            messages = [dict(message) for message in batch.messages]
            yield from complete_task(task, now, {"messages": messages, "count": len(messages)})


def batch_size(value: Any) -> int:
    """Return the maximum number of messages to consume; one if the input does not set it."""
    number = whole_number(value)
    return 1 if number is None else min(max(number, 1), MAX_AT_ONCE)
