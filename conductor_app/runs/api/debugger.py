"""Views and documents of the debugger: breakpoints of runs and definitions, and commands on stopped runs."""

from typing import Any

from django.http import HttpResponse

from ...access.permissions import EXECUTE, WORKFLOW_DEF
from ...core.breakpoints import PLACES, Breakpoint
from ...core.commands.control import ACTIONS
from ...core.document.fields import (
    ChoiceOf,
    FieldSpec,
    IntegerOf,
    ListOf,
    NamedTable,
    ObjectOf,
    read_any,
    read_mapping,
    read_name,
    read_text,
)
from ...core.errors import Invalid, NotFound
from ...definitions.models import WorkflowDefinition
from ...definitions.resolved_definitions import find_row
from ...explanations.debugger import StopDetails, evaluate_expression, live_breakpoints_of, stops_of_run
from ...utils import clock
from ...web.api import permissions as targets
from ...web.api import requests as request_body
from ...web.api.operations import NO_CONTENT, ApiOperation, ArrayOf, Json
from ...web.api.permissions import (
    RequiresAccess,
    RequiresAll,
    can_control_run,
    can_view_run,
    can_view_workflow,
    may_debug,
)
from ...web.api.requests import read_request
from ...web.api.view import ConductorRequest, ConductorView
from ..commands import debugging
from ..commands.debugging import BreakpointRequest, ContinueRequest
from ..documents.workflows import find_run

can_debug_run = RequiresAll((may_debug, can_control_run))
can_debug_workflow = RequiresAll(
    (may_debug, RequiresAccess(((EXECUTE, WORKFLOW_DEF),), targets.named_in_address(WORKFLOW_DEF, "name")))
)


Document = dict[str, Any]
BREAKPOINT = NamedTable(
    "Breakpoint",
    FieldSpec("taskReferenceName", read_name, ""),
    FieldSpec("place", ChoiceOf(*PLACES), PLACES[0]),
    FieldSpec("condition", read_text, ""),
    FieldSpec("minutes", IntegerOf(), 0),
    FieldSpec("reason", read_text, ""),
)
CONTINUE_REQUEST = NamedTable(
    "ContinueRequest",
    FieldSpec("taskId", read_name, ""),
    FieldSpec("action", ChoiceOf(*ACTIONS), ACTIONS[0]),
    FieldSpec("taskReferenceName", read_name, ""),
    FieldSpec("input", read_mapping),
    FieldSpec("output", read_mapping),
    FieldSpec("variables", read_mapping, dict),
    FieldSpec("reason", read_text, ""),
)
EXPRESSION = NamedTable("ExpressionRequest", FieldSpec("expression", read_text, ""))
EXPRESSION_VALUE = NamedTable("ExpressionValue", FieldSpec("value", read_any))
SET_BREAKPOINT = NamedTable(
    "SetBreakpoint",
    FieldSpec("id", read_text),
    FieldSpec("taskReferenceName", read_text),
    FieldSpec("place", ChoiceOf(*PLACES)),
    FieldSpec("condition", read_text),
    FieldSpec("expiresAt", IntegerOf(64)),
    FieldSpec("setBy", read_text),
)
BREAKPOINT_ID = NamedTable("BreakpointId", FieldSpec("id", read_text))
STOP = NamedTable(
    "Stop",
    *(FieldSpec(name, read_text) for name in ("taskId", "taskReferenceName", "taskType", "sentence")),
    FieldSpec("place", ChoiceOf(*PLACES)),
    *(FieldSpec(name, IntegerOf(64)) for name in ("stoppedAt", "continuesAt")),
    *(FieldSpec(name, read_any) for name in ("input", "output")),
)
DEBUGGED_RUN = NamedTable(
    "DebuggedRun",
    *(FieldSpec(name, read_text) for name in ("workflowId", "status")),
    FieldSpec("stops", ListOf(ObjectOf(STOP))),
    FieldSpec("breakpoints", ListOf(ObjectOf(SET_BREAKPOINT))),
    FieldSpec("variables", read_mapping),
)


def parse_breakpoint(document: Document) -> tuple[BreakpointRequest, str]:
    """Return a breakpoint and the reason of a request."""
    fields = read_request(document, BREAKPOINT, "setBreakpoint.request")
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
    """Return how a stopped task continues, and the reason of a request."""
    fields = read_request(document, CONTINUE_REQUEST, "continueRun.request")
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
    """Return the expression of a request."""
    return read_request(document, EXPRESSION, "evaluate.request")["expression"]


def breakpoint_document(found: Breakpoint) -> Document:
    return {
        "id": found.id,
        "taskReferenceName": found.ref,
        "place": found.place,
        "condition": found.condition,
        "expiresAt": found.until,
        "setBy": found.by,
    }


def stop_document(stop: StopDetails) -> Document:
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


class DebuggedRun(ConductorView):
    """GET /api/debug/runs/{workflowId}: list the breakpoints of a run and the tasks that are stopped at them."""

    @ApiOperation("Show where a run is stopped", can_view_run, reply=DEBUGGED_RUN)
    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        run, now = find_run(workflow, ("variables",)), clock.now()
        return Json(
            {
                "workflowId": run.pk,
                "status": run.status,
                "stops": [stop_document(stop) for stop in stops_of_run(run, now)],
                "breakpoints": [breakpoint_document(each) for each in live_breakpoints_of(run.debug, now)],
                "variables": run.variables,
            }
        )


class RunBreakpoints(ConductorView):
    """POST /api/debug/runs/{workflowId}/breakpoints: set a breakpoint on a run in progress.

    `place`: `before` the step is scheduled, `after` its completion, or after a `failure` of one of its attempts.
    """

    @ApiOperation("Set a breakpoint on a run", can_debug_run, reply=BREAKPOINT_ID, body=BREAKPOINT)
    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        found, reason = parse_breakpoint(request_body.read_object(request))
        return Json({"id": debugging.set_breakpoint(workflow, found, request.actor.name, reason)})


class RunBreakpoint(ConductorView):
    """DELETE /api/debug/runs/{workflowId}/breakpoints/{id}: remove a breakpoint. A stop that it has caused remains."""

    @ApiOperation("Remove a breakpoint from a run", can_debug_run, reply=NO_CONTENT)
    def delete(self, request: ConductorRequest, workflow: str, id: str) -> None:
        debugging.remove_breakpoint(workflow, id, request.actor.name)


class ContinueRun(ConductorView):
    """POST /api/debug/runs/{workflowId}/continue: let a stopped task continue.

    `action`: `continue`, `over` the step to the next one, `into` its sub-workflow, or `to` the step
    `taskReferenceName`. `input`, `output` and `variables` replace those of the task and of the run.
    """

    @ApiOperation("Continue a stopped run", can_debug_run, reply=NO_CONTENT, body=CONTINUE_REQUEST)
    def post(self, request: ConductorRequest, workflow: str) -> None:
        found, reason = parse_continue_request(request_body.read_object(request))
        debugging.continue_run(workflow, found, request.actor.name, reason)


class EvaluateExpression(ConductorView):
    """POST /api/debug/runs/{workflowId}/evaluate: evaluate an expression in a run. Masked values are `***`."""

    @ApiOperation("Evaluate an expression in a run", can_view_run, reply=EXPRESSION_VALUE, body=EXPRESSION)
    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        return Json({"value": evaluate_expression(workflow, parse_expression(request_body.read_object(request)))})


class DefinitionBreakpoints(ConductorView):
    """GET, POST /api/debug/workflows/{name}/versions/{version}/breakpoints: list or set those of future runs."""

    @ApiOperation("List the breakpoints of a workflow", can_view_workflow, reply=ArrayOf(SET_BREAKPOINT))
    def get(self, request: ConductorRequest, name: str, version: int) -> HttpResponse:
        debug = {"breakpoints": _find_definition(name, version).breakpoints}
        return Json([breakpoint_document(each) for each in live_breakpoints_of(debug, clock.now())])

    @ApiOperation("Set a breakpoint on a workflow", can_debug_workflow, reply=BREAKPOINT_ID, body=BREAKPOINT)
    def post(self, request: ConductorRequest, name: str, version: int) -> HttpResponse:
        found, reason = parse_breakpoint(request_body.read_object(request))
        return Json({"id": debugging.set_definition_breakpoint(name, version, found, request.actor.name, reason)})


class DefinitionBreakpoint(ConductorView):
    """DELETE /api/debug/workflows/{name}/versions/{version}/breakpoints/{id}: remove one. Started runs keep it."""

    @ApiOperation("Remove a breakpoint from a workflow", can_debug_workflow, reply=NO_CONTENT)
    def delete(self, request: ConductorRequest, name: str, version: int, id: str) -> None:
        debugging.remove_definition_breakpoint(name, version, id, request.actor.name)


def _find_definition(name: str, version: int) -> WorkflowDefinition:
    row = find_row(name, version)
    if row is None:
        raise NotFound(f"No such workflow found by name: {name}, version {version}")
    return row
