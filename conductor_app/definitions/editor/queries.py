"""Completions for the definition editor: fields, step types, tasks, references and known output members."""

from collections.abc import Mapping
from typing import Any

from ...core.decision_context import RUN_FACTS, RUN_PAYLOADS, TASK_FACTS
from ...core.document.checks.document_fields import FieldTable
from ...core.document.checks.event_handler import ACTIONS, EVENT_HANDLER
from ...core.document.checks.field_specs import RATE_LIMIT, SUB_WORKFLOW, TASK_DEFINITION, WORKFLOW_DEFINITION
from ...core.document.checks.step_fields import STEP_FIELDS
from ...core.document.lint import LintContext, PayloadShape
from ...core.document.lint.output_shapes import step_output_shape, workflow_input_shape
from ...core.step_structure import type_of
from ...core.step_tree import StepSpot, walk
from ...core.step_types import STEP_TYPES
from ...models import WorkflowDefinition

MAX_DEPTH = 5
MAX_NAMES = 500
TABLES: dict[str, FieldTable] = {
    "workflow": WORKFLOW_DEFINITION,
    "step": STEP_FIELDS,
    "subWorkflowParam": SUB_WORKFLOW,
    "taskDefinition": TASK_DEFINITION,
    "rateLimitConfig": RATE_LIMIT,
    "eventHandler": EVENT_HANDLER,
}
FIELDS = {name: [field.name for field in table] for name, table in TABLES.items()}
CHOICES = {
    "evaluatorType": ["value-param", "javascript", "graaljs", "python"],
    "timeoutPolicy": ["TIME_OUT_WF", "ALERT_ONLY", "RETRY"],
    "retryLogic": ["FIXED", "LINEAR_BACKOFF", "EXPONENTIAL_BACKOFF"],
    "joinMode": ["SYNC", "ASYNC"],
    "idempotencyStrategy": ["FAIL", "RETURN_EXISTING", "FAIL_ON_RUNNING"],
    "terminationStatus": ["COMPLETED", "FAILED", "TERMINATED"],
    "method": ["GET", "POST", "PUT", "PATCH", "DELETE"],
    "action": list(ACTIONS),
}
STEP_TYPE_NAMES = sorted(STEP_TYPES)


def complete_workflow(document: Mapping[str, Any], known: LintContext) -> dict[str, Any]:
    """Return all completions for a workflow definition."""
    found = {spot.ref: spot for spot in walk(document.get("tasks")) if spot.ref}
    variables = document.get("variables")
    return {
        **_common_choices(known),
        "fields": FIELDS,
        "refs": list(found),
        "types": {ref: _spot_name(spot) for ref, spot in found.items()},
        "outputs": {ref: _name_tree(step_output_shape(spot, known)) for ref, spot in found.items()},
        "workflow": {
            "input": _name_tree(workflow_input_shape(document)),
            "variables": {name: {} for name in (variables if isinstance(variables, Mapping) else ())},
        },
    }


def complete_task() -> dict[str, Any]:
    """Return all completions for a task definition, which refers only to its own fields."""
    return {
        **_common_choices(LintContext()),
        "fields": {"workflow": FIELDS["taskDefinition"]},
        "refs": [],
        "types": {},
    } | {
        "outputs": {},
        "workflow": {},
    }


def complete_handler() -> dict[str, Any]:
    """Return all completions for an event handler."""
    names = WorkflowDefinition.objects.order_by("name").values_list("name", flat=True).distinct()
    choices = {**CHOICES, "name": list(names[:MAX_NAMES])}
    return {**complete_task(), "fields": {"workflow": FIELDS["eventHandler"]}, "choices": choices}


def _common_choices(known: LintContext) -> dict[str, Any]:
    return {
        "choices": CHOICES,
        "stepTypes": STEP_TYPE_NAMES,
        "tasks": sorted(known.tasks or ()),
        "workflows": sorted(known.workflows or ()),
        "taskParts": ["output", "input", *TASK_FACTS],
        "runParts": [*RUN_PAYLOADS, *RUN_FACTS, "env", "secrets"],
    }


def _spot_name(spot: StepSpot) -> str:
    return type_of(spot.step) if spot.name == spot.ref else f"{type_of(spot.step)} {spot.name}"


def _name_tree(shape: PayloadShape, depth: int = 0) -> dict[str, Any]:
    """Return the known member names of a shape as nested mappings."""
    if shape.members is None or depth > MAX_DEPTH:
        return {}
    return {name: _name_tree(inner, depth + 1) for name, inner in shape.members.items()}
