"""FOR_EACH_ITEM: what a FOR_EACH does for one item of its list. Made by the engine; nobody writes it down."""

from collections.abc import Iterator
from typing import Any

from ..data_requests import Element
from ..decision_context import Knowledge
from ..definition import Key, Step
from ..effects import Effect, MoveAttempt, ResolveTask, UpdateTask
from ..snapshot import UNKNOWN, Task
from .base import Kind, complete, held_by_engine
from .iterations import COUNTED, ENDS_AS, first_failure, outcomes_of_turn, outputs_by_ref


class ForEachItem(Kind):
    """Active while the body goes on for its item; its one turn keeps that body apart from those of other items."""

    type = "FOR_EACH_ITEM"
    waits_for_tasks = True
    is_retried = False
    is_reopened = True
    takes_failures = True

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        each, index = know.run.tasks[Key(step.loops[-1], key.turn[:-1])], key.turn[-1] - 1
        known = each.attempt.input
        item = know.ask(Element(each.attempt.id, index)) if known is UNKNOWN else known["items"][index]
        shown = {"item": item, "index": index}
        memo = {"goes_on": each.memo["goes_on"]}
        yield held_by_engine(step, key, know.run, now, iteration=1, memo=memo, input=shown, output=shown)

    def settle(self, task: Task, know: Knowledge, now: int) -> Iterator[Effect]:
        outcomes = outcomes_of_turn(task, know)
        if not outcomes:
            return
        if failure := first_failure(outcomes):
            yield from failed_as(task, failure.status, failure.reason, now)
        else:
            yield from complete(task, now, outputs_by_ref(outcomes))

    def take(self, task: Task, failed: Task, know: Knowledge, now: int) -> Iterator[Effect]:
        """A task of the item has failed, and nothing else of it is open."""
        yield from failed_as(task, failed.attempt.status, failed.attempt.reason, now)

    def leads_to(self, task: Task) -> Iterator[Key]:
        if task.is_open and task.attempt.is_open:
            yield Key(task.step.heads[0], (*task.key.turn, 1))

    def reopened(self, task: Task, know: Knowledge, now: int, turn: int | None = None) -> Iterator[Effect]:
        yield from super().reopened(task, know, now)
        memo = {name: value for name, value in task.memo.items() if name != COUNTED}
        yield UpdateTask(task.key, {"memo": memo}, {"output": know.attempt_payload(task, "input")})


def failed_as(task: Task, status: str, reason: str, now: int) -> Iterator[Effect]:
    """The item ends as a task of it did; where the others go on, it has ended with errors only."""
    facts: dict[str, Any] = {"reason": reason, "output": {}}
    yield MoveAttempt(task.key, ENDS_AS.get(status, "fail"), now, facts)
    if task.memo["goes_on"]:
        yield ResolveTask(task.key, "complete_with_errors")
