"""Completions for the definition editor: fields, step types, tasks, references and known output members."""

from collections.abc import Mapping
from typing import Any

from ...core.decision_context import RUN_FACTS, RUN_PAYLOADS, TASK_FACTS
from ...core.definition import StepSpot, type_of, walk
from ...core.document.fields import (
    RATE_LIMIT,
    STEP_FIELDS,
    SUB_WORKFLOW,
    TASK_DEFINITION,
    WORKFLOW_DEFINITION,
    FieldTable,
)
from ...core.step_types import STEP_TYPES
from ...core.validation.checks import ACTIONS, EVENT_HANDLER
from ...core.validation.findings import (
    LintContext,
    PayloadShape,
    step_output_shape,
    workflow_input_shape,
)
from ..models import WorkflowDefinition

MAX_WORKFLOWS = 500
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


def complete_workflow(document: Mapping[str, Any], known: LintContext) -> dict[str, Any]:
    """Return all completions for a workflow definition."""
    found = {spot.ref: spot for spot in walk(document.get("tasks")) if spot.ref}
    variables = document.get("variables")
    return {
        **_common_choices(known),
        "fields": {name: _field_names(name) for name in TABLES},
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
        "fields": {"workflow": _field_names("taskDefinition")},
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
    return {**complete_task(), "fields": {"workflow": _field_names("eventHandler")}, "choices": choices}


def _field_names(table: str) -> list[str]:
    return [field.name for field in TABLES[table]]


def _common_choices(known: LintContext) -> dict[str, Any]:
    return {
        "choices": CHOICES,
        "stepTypes": sorted(STEP_TYPES),
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
