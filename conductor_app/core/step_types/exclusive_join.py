"""EXCLUSIVE_JOIN: continues with the one branch that was taken."""

from collections.abc import Iterator
from functools import partial

from ..data_requests import TaskAt
from ..decision_context import DecisionContext, gather_values
from ..definition import Key, Step
from ..effects import Effect
from ..snapshot import Task
from ..states import SKIPPED
from ..step_structure import Flow
from .base import StepType, complete_task, engine_held_task, fail_task, resolve_inputs


class ExclusiveJoin(StepType):
    """Ends with the first joined task that has ended, or with the first of its default tasks (execution §8.8)."""

    type = "EXCLUSIVE_JOIN"
    flow = Flow.JOIN
    forwards_failures = True
    waits_for_tasks = True
    is_retried = False
    is_reopened = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        yield engine_held_task(step, key, ctx.run, now, input={**inputs, "joinOn": list(step.joins)}, output={})

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        chosen = find_deciding_task(task, ctx)
        if chosen is None:
            return
        output = ctx.attempt_payload(chosen, "output")
        if chosen.succeeded:
            yield from complete_task(task, now, output)
        else:
            yield from fail_task(task, now, chosen.attempt.reason, output)

    def on_deadlock(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        # The last task of the branch that was taken was skipped. Its given output is the output of the branch.
        found = (find_run_task(ctx, Key(ref, task.key.iteration_path)) for ref in task.step.joins)
        if skipped := next((each for each in found if each is not None and each.status == SKIPPED), None):
            yield from complete_task(task, now, ctx.attempt_payload(skipped, "output"))


def find_deciding_task(task: Task, ctx: DecisionContext) -> Task | None:
    """Return the ended task that decides, or None."""
    defaults = task.step.document.get("defaultExclusiveJoinTask") or []
    if not ctx.run.has_changes_for(task, (Key(ref, task.key.iteration_path) for ref in (*task.step.joins, *defaults))):
        return None
    for refs in (task.step.joins, defaults):
        tasks = gather_values(partial(find_run_task, ctx, Key(ref, task.key.iteration_path)) for ref in refs)
        first = next((t for t in tasks if t is not None and t.status != SKIPPED), None)
        if first is not None and not first.is_open:
            return first
    return None


def find_run_task(ctx: DecisionContext, key: Key) -> Task | None:
    """Return the task with this key, loading it if the snapshot does not hold it, or None."""
    if key in ctx.run.tasks or ctx.run.is_whole:
        return ctx.run.tasks.get(key)
    return ctx.require(TaskAt(key))
