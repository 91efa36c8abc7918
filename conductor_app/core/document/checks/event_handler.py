"""Validation of event handlers (api §3.12)."""

from typing import Any

from ...errors import ValidationError
from .document_fields import FieldSpec, FieldTable, ObjectOf, read_document
from .values import (
    ChoiceOf,
    DocumentPosition,
    ListOf,
    MapOf,
    read_any,
    read_boolean,
    read_mapping,
    read_name,
    read_text,
)

START: FieldTable = (
    FieldSpec("name", read_text),
    # An expression may stand for it.
    FieldSpec("version", read_any),
    FieldSpec("correlationId", read_text),
    FieldSpec("input", read_mapping, dict),
    FieldSpec("taskToDomain", MapOf(read_text)),
)
REPORT: FieldTable = (
    FieldSpec("workflowId", read_text),
    FieldSpec("taskRefName", read_text),
    FieldSpec("output", read_mapping, dict),
    FieldSpec("taskId", read_text),
    FieldSpec("reasonForIncompletion", read_text),
)
TERMINATE: FieldTable = (FieldSpec("workflowId", read_text), FieldSpec("terminationReason", read_text))
VARIABLES: FieldTable = (
    FieldSpec("workflowId", read_text),
    FieldSpec("variables", read_mapping, dict),
    FieldSpec("appendArray", read_boolean),
)
ACTIONS = ("start_workflow", "complete_task", "fail_task", "terminate_workflow", "update_workflow_variables")
"""The actions of handlers."""

ACTION: FieldTable = (
    FieldSpec("action", ChoiceOf(*ACTIONS)),
    FieldSpec("start_workflow", ObjectOf(START)),
    FieldSpec("complete_task", ObjectOf(REPORT)),
    FieldSpec("fail_task", ObjectOf(REPORT)),
    FieldSpec("terminate_workflow", ObjectOf(TERMINATE)),
    FieldSpec("update_workflow_variables", ObjectOf(VARIABLES)),
    FieldSpec("expandInlineJSON", read_boolean, False),
)

EVENT_HANDLER: FieldTable = (
    FieldSpec("name", read_name),
    FieldSpec("event", read_name),
    FieldSpec("condition", read_text),
    FieldSpec("actions", ListOf(ObjectOf(ACTION))),
    FieldSpec("active", read_boolean, False),
    FieldSpec("evaluatorType", read_text),
)


def read_handler(document: dict[str, Any]) -> tuple[dict[str, Any], list[ValidationError]]:
    """Return the handler with converted fields, and all validation errors."""
    place = DocumentPosition()
    read = read_document(document, EVENT_HANDLER, place)
    if not read.get("name"):
        place.at("name").add_missing("Missing event handler name", document.get("name"))
    if not read.get("event"):
        place.at("event").add_missing("Missing event location", document.get("event"))
    # An empty list is one of Orkes: the handler only records what it receives.
    if read.get("actions") is None:
        place.at("actions").add_missing("No actions specified. Please specify at-least one action")
    for number, action in enumerate(read.get("actions") or ()):
        _check_action(action or {}, place.at(f"actions[{number}]"))
    return read, place.validation_errors


def _check_action(action: dict[str, Any], place: DocumentPosition) -> None:
    kind = action.get("action")
    if not kind:
        place.at("action").add_missing("Missing action: name the action to execute")
    elif not action.get(kind):
        place.at(kind).add_missing(f"Missing {kind}: it has the parameters of the action")
