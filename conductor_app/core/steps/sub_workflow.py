"""SUB_WORKFLOW: another run, waited for."""

from collections.abc import Iterator
from typing import Any

from ..definition import Key, Step
from ..effects import Await, Effect, StartRun, UpdateTask
from ..errors import StepRefused
from ..ids import derived_id
from ..knowledge import Knowledge
from ..snapshot import Task
from .children import definition_of, domains_of, fitting_input, priority_of
from .keys import claimed
from .kind import Kind, held_by_engine, inputs_of


class SubWorkflow(Kind):
    """Starts a run of its own and ends as that run ends (execution §8.10)."""

    type = "SUB_WORKFLOW"
    hears_outside = True

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, know, key, know.run, now)
        param = know.resolve(step.document.get("subWorkflowParam") or {})
        definition = definition_of(param, know)
        claim = claimed(param, definition, know, key)
        if claim.holder and claim.holder.is_awaited:
            raise StepRefused(f"Run {claim.holder.id} holds the idempotency key, and another task waits for it.")
        started = derived_id(now, know.run.id, know.run.revision, know.run.next_seq, key, "child")
        child = claim.holder.id if claim.holder else started
        shown = {"subWorkflowName": definition.name, "subWorkflowVersion": definition.version, "workflowInput": inputs}
        task = held_by_engine(
            step, key, know.run, now, child_id=child, input={**inputs, **shown}, output={"subWorkflowId": child}
        )
        yield task
        if claim.holder:
            yield Await(child, task.task.attempt.id)
            return
        yield StartRun(
            child,
            definition,
            fitting_input(definition, child_input(inputs), know),
            know.run.correlation_id,
            priority_of(param.get("priority"), know.run.priority),
            domains_of(param, know),
            parent_attempt_id=task.task.attempt.id,
            idempotency_key=claim.key,
            frees=claim.frees,
        )

    def reopened(self, task: Task, know: Knowledge, now: int, turn: int | None = None) -> Iterator[Effect]:
        yield from super().reopened(task, know, now)
        if not task.succeeded:
            yield UpdateTask(task.key, attempt_facts={"output": {"subWorkflowId": task.attempt.child_id}})


def child_input(inputs: dict[str, Any]) -> dict[str, Any]:
    """The child's input: `workflowInput` if there is one, else all inputs."""
    given = inputs.get("workflowInput")
    return given if isinstance(given, dict) and given else inputs
