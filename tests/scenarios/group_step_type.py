"""GROUP: a container type for tests only. It executes `groupTasks` once and returns their outputs."""

from collections.abc import Iterator

from conductor_app.core.decision_context import DecisionContext
from conductor_app.core.definition import Body, Document, Flow, Key, Step, body_at
from conductor_app.core.document.fields import STEPS, FieldSpec
from conductor_app.core.effects import Effect
from conductor_app.core.snapshot import Task
from conductor_app.core.step_types.base import StepType, complete_task, engine_held_task, fail_task, resolve_inputs
from conductor_app.core.step_types.loops import first_failure, outcomes_of_iteration, outputs_by_ref


class Group(StepType):
    """Open until its tasks have ended; they belong to its only iteration."""

    type = "GROUP"
    flow = Flow.LOOP
    fields = (FieldSpec("groupTasks", STEPS),)
    required_fields = ("groupTasks",)
    waits_for_tasks = True
    is_retried = False
    is_reopened = True
    counts_iterations = True

    def bodies(self, step: Document) -> Iterator[Body]:
        yield body_at(step, "groupTasks", label="group")

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        yield engine_held_task(step, key, ctx.run, now, iteration=1, input=inputs, output={})

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        outcomes = outcomes_of_iteration(task, ctx)
        if not outcomes:
            return
        if failure := first_failure(outcomes):
            yield from fail_task(task, now, failure.reason)
        else:
            yield from complete_task(task, now, outputs_by_ref(outcomes))

    def successors(self, task: Task) -> Iterator[Key]:
        if task.is_open:
            yield Key(task.step.heads[0], (*task.key.iteration_path, task.iteration))
        else:
            yield from super().successors(task)
