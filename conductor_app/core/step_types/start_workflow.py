"""START_WORKFLOW: starts another run without waiting for it."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..child_run import require_depth_to_start
from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect, StartRun
from ..errors import StepRefused
from ..expressions import field_text, quote_value
from ..expressions.json_walk import expression_texts
from ..ids import derived_id
from .base import StepType, completed_task, resolve_inputs
from .child_definition import definition_of, domains_of, priority_of, validate_child_input
from .field_checks import whole_number
from .idempotency import claim_key


class StartWorkflow(StepType):
    """Completes as soon as the other run is created (execution §8.11)."""

    type = "START_WORKFLOW"
    icon = "start"
    output_members = {"workflowId": None}
    is_forked_by_type = True

    def named_workflows(self, step: Mapping[str, Any]) -> Iterator[Any]:
        inputs = step.get("inputParameters")
        request = inputs.get("startWorkflow") if isinstance(inputs, Mapping) else None
        if isinstance(request, Mapping) and not isinstance(request.get("workflowDef"), Mapping):
            yield request.get("name")

    def inline_definitions(self, step: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        inputs = step.get("inputParameters")
        request = inputs.get("startWorkflow") if isinstance(inputs, Mapping) else None
        definition = request.get("workflowDef") if isinstance(request, Mapping) else None
        # Expressions in the request are those of the parent, and what they give is not known yet.
        if isinstance(definition, Mapping) and not any(expression_texts(definition)):
            yield "inputParameters.startWorkflow.workflowDef", definition

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        require_depth_to_start(ctx.run, now)
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        request = inputs.get("startWorkflow")
        if not isinstance(request, dict):
            raise StepRefused(
                "START_WORKFLOW requires an input 'startWorkflow' with the name of the workflow to start."
            )
        # The request may contain data. The author of the step has named only the step's own secrets.
        written_name = next(self.named_workflows({"inputParameters": step.inputs}), None)
        definition = definition_of(
            {**request, "workflowDefinition": request.get("workflowDef")},
            ctx,
            step.secrets,
            written_name=written_name if step.is_authored and not step.is_named_by_input else None,
            field="startWorkflow",
        )
        claim = claim_key(request, definition, ctx, key)
        new_id = derived_id(now, ctx.run.id, ctx.run.revision, ctx.run.next_seq, key, "started")
        run_id = claim.holder.id if claim.holder else new_id
        yield completed_task(step, key, ctx.run, now, input=inputs, output={"workflowId": run_id})
        if claim.holder:
            return
        yield StartRun(
            run_id,
            definition,
            validate_child_input(definition, _input(request), ctx),
            field_text(request.get("correlationId")).replace("\0", "") or ctx.run.correlation_id,
            _priority(request.get("priority")),
            domains_of(request, ctx),
            idempotency_key=claim.key,
            releases_key_of=claim.releases_key_of,
        )


def _priority(value: Any) -> int:
    if value not in (None, "") and whole_number(value) is None:
        raise StepRefused(f"`startWorkflow.priority` must be a whole number, not {quote_value(value)}.")
    return priority_of(value, 0)


def _input(request: dict[str, Any]) -> dict[str, Any]:
    child_input = request.get("input")
    return child_input if isinstance(child_input, dict) else {}
