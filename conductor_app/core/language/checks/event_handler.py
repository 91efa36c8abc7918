"""Event handlers: their fields, and what is wrong with one (api §3.12)."""

from typing import Any

from ...errors import Complaint
from .fields import Field, Of, Table, read_document
from .values import Choice, ListOf, MapOf, Place, anything, flag, mapping, short_text, text

START: Table = (
    Field("name", text),
    # An expression may stand for it.
    Field("version", anything),
    Field("correlationId", text),
    Field("input", mapping, dict),
    Field("taskToDomain", MapOf(text)),
)
REPORT: Table = (
    Field("workflowId", text),
    Field("taskRefName", text),
    Field("output", mapping, dict),
    Field("taskId", text),
    Field("reasonForIncompletion", text),
)
TERMINATE: Table = (Field("workflowId", text), Field("terminationReason", text))
VARIABLES: Table = (Field("workflowId", text), Field("variables", mapping, dict), Field("appendArray", flag))
ACTIONS = ("start_workflow", "complete_task", "fail_task", "terminate_workflow", "update_workflow_variables")
"""What a handler can do."""

ACTION: Table = (
    Field("action", Choice(*ACTIONS)),
    Field("start_workflow", Of(START)),
    Field("complete_task", Of(REPORT)),
    Field("fail_task", Of(REPORT)),
    Field("terminate_workflow", Of(TERMINATE)),
    Field("update_workflow_variables", Of(VARIABLES)),
    Field("expandInlineJSON", flag, False),
)

EVENT_HANDLER: Table = (
    Field("name", short_text),
    Field("event", short_text),
    Field("condition", text),
    Field("actions", ListOf(Of(ACTION)), list),
    Field("active", flag, False),
    Field("evaluatorType", text),
)


def read_handler(document: dict[str, Any]) -> tuple[dict[str, Any], list[Complaint]]:
    """The handler with every field as its type, and everything that is wrong with it."""
    place = Place()
    read = read_document(document, EVENT_HANDLER, place)
    if not read.get("name"):
        place.at("name").miss("Missing event handler name", document.get("name"))
    if not read.get("event"):
        place.at("event").miss("Missing event location", document.get("event"))
    if not read["actions"]:
        place.at("actions").miss("No actions specified. Please specify at-least one action")
    for number, action in enumerate(read["actions"]):
        _check_action(action or {}, place.at(f"actions[{number}]"))
    return read, place.complaints


def _check_action(action: dict[str, Any], place: Place) -> None:
    kind = action.get("action")
    if not kind:
        place.at("action").miss("Missing action: say what is to be done")
    elif not action.get(kind):
        place.at(kind).miss(f"Missing {kind}: it says how the action is to be done")
