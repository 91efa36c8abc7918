"""START_WORKFLOW: another run, not waited for."""

from collections.abc import Iterator
from typing import Any

from ..decision_context import Knowledge
from ..definition import Key, Step
from ..effects import Effect, StartRun
from ..errors import StepRefused
from ..ids import derived_id
from .base import Kind, finished_at_once, inputs_of
from .child_definition import definition_of, domains_of, fitting_input, priority_of
from .idempotency import claimed


class StartWorkflow(Kind):
    """Over as soon as the other run is created (execution §8.11)."""

    type = "START_WORKFLOW"

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, know, key, know.run, now)
        request = inputs.get("startWorkflow")
        if not isinstance(request, dict):
            raise StepRefused("START_WORKFLOW needs an input 'startWorkflow' with the name of the workflow to start.")
        definition = definition_of({**request, "workflowDefinition": request.get("workflowDef")}, know)
        claim = claimed(request, definition, know, key)
        started = derived_id(now, know.run.id, know.run.revision, know.run.next_seq, key, "started")
        run_id = claim.holder.id if claim.holder else started
        yield finished_at_once(step, key, know.run, now, input=inputs, output={"workflowId": run_id})
        if claim.holder:
            return
        yield StartRun(
            run_id,
            definition,
            fitting_input(definition, _input(request), know),
            str(request.get("correlationId") or know.run.correlation_id),
            priority_of(request.get("priority"), 0),
            domains_of(request, know),
            idempotency_key=claim.key,
            frees=claim.frees,
        )


def _input(request: dict[str, Any]) -> dict[str, Any]:
    given = request.get("input")
    return given if isinstance(given, dict) else {}
