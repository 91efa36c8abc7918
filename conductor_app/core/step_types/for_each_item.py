"""FOR_EACH_ITEM: executes the body of a FOR_EACH for one item. The engine creates it; documents never contain it."""

from collections.abc import Iterator
from typing import Any, cast

from ..data_requests import ListItem
from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect, ResolveTask, TransitionAttempt, UpdateTask
from ..snapshot import UNKNOWN, Task
from ..step_state import TaskState
from .base import StepType, complete_task, engine_held_task
from .iterations import COUNTED, ENDS_AS, first_failure, outcomes_of_iteration, outputs_by_ref


class ForEachItemState(TaskState, total=False):
    """State of an item.

    `goes_on`: continue with other items after a failure. `is_counted`: the FOR_EACH has recorded its end.
    """

    goes_on: bool
    is_counted: bool


class ForEachItem(StepType):
    """Active while the body is executed for its item.

    Its single iteration separates the body from those of other items.
    """

    type = "FOR_EACH_ITEM"
    runs_by_name = False
    waits_for_tasks = True
    is_retried = False
    is_reopened = True
    handles_failures = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        each, index = ctx.run.tasks[Key(step.loops[-1], key.iteration_path[:-1])], key.iteration_path[-1] - 1
        payload = each.attempt.input
        item = ctx.require(ListItem(each.attempt.id, index)) if payload is UNKNOWN else payload["items"][index]
        item_input = {"item": item, "index": index}
        step_state = ForEachItemState(goes_on=each.step_state["goes_on"])
        yield engine_held_task(
            step, key, ctx.run, now, iteration=1, step_state=step_state, input=item_input, output=item_input
        )

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        outcomes = outcomes_of_iteration(task, ctx)
        if not outcomes:
            return
        if failure := first_failure(outcomes):
            yield from fail_item(task, failure.status, failure.reason, now)
        else:
            yield from complete_task(task, now, outputs_by_ref(outcomes))

    def on_child_failure(self, task: Task, failed: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """Fail the item after the failure of one of its tasks, when nothing else of it is open."""
        yield from fail_item(task, failed.attempt.status, failed.attempt.reason, now)

    def successors(self, task: Task) -> Iterator[Key]:
        if task.is_open and task.attempt.is_open:
            yield Key(task.step.heads[0], (*task.key.iteration_path, 1))

    def reopen(self, task: Task, ctx: DecisionContext, now: int, iteration: int | None = None) -> Iterator[Effect]:
        yield from super().reopen(task, ctx, now)
        step_state = {name: value for name, value in task.step_state.items() if name != COUNTED}
        yield UpdateTask(task.key, {"step_state": step_state}, {"output": ctx.attempt_payload(task, "input")})


def fail_item(task: Task, status: str, reason: str, now: int) -> Iterator[Effect]:
    """End the item like the task that failed. If other items continue, the item completes with errors."""
    facts: dict[str, Any] = {"reason": reason, "output": {}}
    yield TransitionAttempt(task.key, ENDS_AS.get(status, "fail"), now, facts)
    if cast(ForEachItemState, task.step_state)["goes_on"]:
        yield ResolveTask(task.key, "complete_with_errors")
