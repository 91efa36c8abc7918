"""EXCLUSIVE_JOIN: goes on with the one branch that was taken."""

from collections.abc import Iterator
from functools import partial

from ..data_requests import Look
from ..decision_context import Knowledge, gather
from ..definition import Key, Step
from ..effects import Effect
from ..snapshot import Task
from ..states import SKIPPED
from .base import Kind, complete, fail, held_by_engine, inputs_of


class ExclusiveJoin(Kind):
    """Ends with the first joined task that has ended, else with the first of its default tasks (execution §8.8)."""

    type = "EXCLUSIVE_JOIN"
    waits_for_tasks = True
    is_retried = False
    is_reopened = True

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, know, key, know.run, now)
        yield held_by_engine(step, key, know.run, now, input={**inputs, "joinOn": list(step.joins)}, output={})

    def settle(self, task: Task, know: Knowledge, now: int) -> Iterator[Effect]:
        chosen = taken(task, know)
        if chosen is None:
            return
        output = know.attempt_payload(chosen, "output")
        if chosen.succeeded:
            yield from complete(task, now, output)
        else:
            yield from fail(task, now, chosen.attempt.reason, output)

    def stranded(self, task: Task, know: Knowledge, now: int) -> Iterator[Effect]:
        # The end of the one branch that was taken was skipped: what was given for it is what the branch came to.
        found = (find(know, Key(ref, task.key.turn)) for ref in task.step.joins)
        if skipped := next((each for each in found if each is not None and each.status == SKIPPED), None):
            yield from complete(task, now, know.attempt_payload(skipped, "output"))


def taken(task: Task, know: Knowledge) -> Task | None:
    """The ended task that decides, if there is one yet."""
    defaults = task.step.document.get("defaultExclusiveJoinTask") or []
    if not know.run.has_news_for(task, (Key(ref, task.key.turn) for ref in (*task.step.joins, *defaults))):
        return None
    for refs in (task.step.joins, defaults):
        tasks = gather(partial(find, know, Key(ref, task.key.turn)) for ref in refs)
        first = next((t for t in tasks if t is not None and t.status != SKIPPED), None)
        if first is not None and not first.is_open:
            return first
    return None


def find(know: Knowledge, key: Key) -> Task | None:
    """The task with this key, asked for if it is not in the snapshot."""
    if key in know.run.tasks or know.run.is_whole:
        return know.run.tasks.get(key)
    return know.ask(Look(key))
