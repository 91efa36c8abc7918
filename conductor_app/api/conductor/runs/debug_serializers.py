"""Breakpoints, stops and commands of the debugger, as clients send and receive them."""

from typing import Any

from ....core.breakpoints import PLACES, Breakpoint
from ....core.commands.debug import ACTIONS
from ....core.document.checks.document_fields import FieldSpec, FieldTable, ObjectOf
from ....core.document.checks.values import ChoiceOf, IntegerOf, ListOf, read_any, read_mapping, read_name, read_text
from ....core.errors import Invalid
from ....engine.runs.debugging import BreakpointRequest, ContinueRequest
from ....insight.runs.debugger import StopDetails
from ..request_fields import read_request

Document = dict[str, Any]
BREAKPOINT: FieldTable = (
    FieldSpec("taskReferenceName", read_name, ""),
    FieldSpec("place", ChoiceOf(*PLACES), PLACES[0]),
    FieldSpec("condition", read_text, ""),
    FieldSpec("minutes", IntegerOf(), 0),
    FieldSpec("reason", read_text, ""),
)
CONTINUE_REQUEST: FieldTable = (
    FieldSpec("taskId", read_name, ""),
    FieldSpec("action", ChoiceOf(*ACTIONS), ACTIONS[0]),
    FieldSpec("taskReferenceName", read_name, ""),
    FieldSpec("input", read_mapping),
    FieldSpec("output", read_mapping),
    FieldSpec("variables", read_mapping, dict),
    FieldSpec("reason", read_text, ""),
)
EXPRESSION: FieldTable = (FieldSpec("expression", read_text, ""),)
EXPRESSION_VALUE: FieldTable = (FieldSpec("value", read_any),)
SET_BREAKPOINT: FieldTable = (
    FieldSpec("id", read_text),
    FieldSpec("taskReferenceName", read_text),
    FieldSpec("place", ChoiceOf(*PLACES)),
    FieldSpec("condition", read_text),
    FieldSpec("expiresAt", IntegerOf(64)),
    FieldSpec("setBy", read_text),
)
BREAKPOINT_ID: FieldTable = (FieldSpec("id", read_text),)
STOP: FieldTable = (
    *(FieldSpec(name, read_text) for name in ("taskId", "taskReferenceName", "taskType", "sentence")),
    FieldSpec("place", ChoiceOf(*PLACES)),
    *(FieldSpec(name, IntegerOf(64)) for name in ("stoppedAt", "continuesAt")),
    *(FieldSpec(name, read_any) for name in ("input", "output")),
)
DEBUGGED_RUN: FieldTable = (
    *(FieldSpec(name, read_text) for name in ("workflowId", "status")),
    FieldSpec("stops", ListOf(ObjectOf(STOP))),
    FieldSpec("breakpoints", ListOf(ObjectOf(SET_BREAKPOINT))),
    FieldSpec("variables", read_mapping),
)


def parse_breakpoint(document: Document) -> tuple[BreakpointRequest, str]:
    """Return a breakpoint and the reason of a request.

    Raises:
        ValidationFailed: when fields are invalid.
        Invalid: when the step is missing.
    """
    fields = read_request(document, BREAKPOINT, "setBreakpoint.request", lambda _fields, _position: None)
    return build_request(fields), fields["reason"][:500]


def build_request(fields: Document) -> BreakpointRequest:
    """Return a breakpoint from the fields of a request.

    Raises:
        Invalid: when the step is missing.
    """
    if not fields.get("taskReferenceName"):
        raise Invalid("The field 'taskReferenceName' of a breakpoint is missing.")
    return BreakpointRequest(fields["taskReferenceName"], fields["place"], fields["condition"], fields["minutes"] or 0)


def parse_continue_request(document: Document) -> tuple[ContinueRequest, str]:
    """Return how a stopped task continues, and the reason of a request.

    Raises:
        ValidationFailed: when fields are invalid.
        Invalid: when the task is missing.
    """
    fields = read_request(document, CONTINUE_REQUEST, "continueRun.request", lambda _fields, _position: None)
    if not fields["taskId"]:
        raise Invalid("The field 'taskId' is missing. The stops of the run contain it.")
    request = ContinueRequest(
        fields["taskId"],
        fields["action"],
        fields["taskReferenceName"],
        input=fields.get("input"),
        output=fields.get("output"),
        variables=fields["variables"],
    )
    return request, fields["reason"][:500]


def parse_expression(document: Document) -> str:
    """Return the expression of a request.

    Raises:
        ValidationFailed: when fields are invalid.
    """
    return read_request(document, EXPRESSION, "evaluate.request", lambda _fields, _position: None)["expression"]


def breakpoint_document(found: Breakpoint) -> Document:
    """Return a breakpoint."""
    return {
        "id": found.id,
        "taskReferenceName": found.ref,
        "place": found.place,
        "condition": found.condition,
        "expiresAt": found.until,
        "setBy": found.by,
    }


def stop_document(stop: StopDetails) -> Document:
    """Return a stop of a run."""
    document: Document = {
        "taskId": stop.attempt_id,
        "taskReferenceName": stop.task,
        "taskType": stop.type,
        "place": stop.place,
        "sentence": stop.sentence,
        "stoppedAt": stop.since,
        "continuesAt": stop.until,
    }
    return document | ({stop.payload: stop.value} if stop.payload else {})
