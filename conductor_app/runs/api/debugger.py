"""Views of the debugger: breakpoints of runs and definitions, and commands on stopped runs."""

from django.http import HttpResponse

from .... import clock
from ....core.errors import NotFound
from ....engine.definitions.resolved_definitions import find_row
from ....engine.runs import debugging
from ....insight.runs.debugger import evaluate_expression, live_breakpoints_of, stops_of_run
from ....insight.runs.execution import find_run
from ....models import WorkflowDefinition
from .. import request_body
from ..api_operation import NO_CONTENT, ApiOperation, ArrayOf
from ..permissions import can_debug_run, can_debug_workflow, can_view_run, can_view_workflow
from ..replies import Json, NoContent
from ..view import ConductorRequest, ConductorView
from .debug_serializers import (
    BREAKPOINT,
    BREAKPOINT_ID,
    CONTINUE_REQUEST,
    DEBUGGED_RUN,
    EXPRESSION,
    EXPRESSION_VALUE,
    SET_BREAKPOINT,
    breakpoint_document,
    parse_breakpoint,
    parse_continue_request,
    parse_expression,
    stop_document,
)


class DebuggedRun(ConductorView):
    """GET /api/debug/runs/{workflowId}: list the breakpoints of a run and the tasks that are stopped at them."""

    operations = {"get": ApiOperation("Show where a run is stopped", permission=can_view_run, reply=DEBUGGED_RUN)}

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

    operations = {
        "post": ApiOperation(
            "Set a breakpoint on a run", permission=can_debug_run, reply=BREAKPOINT_ID, body=BREAKPOINT
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        found, reason = parse_breakpoint(request_body.read_object(request))
        return Json({"id": debugging.set_breakpoint(workflow, found, request.actor.name, reason)})


class RunBreakpoint(ConductorView):
    """DELETE /api/debug/runs/{workflowId}/breakpoints/{id}: remove a breakpoint. A stop that it has caused remains."""

    operations = {
        "delete": ApiOperation("Remove a breakpoint from a run", permission=can_debug_run, reply=NO_CONTENT),
    }

    def delete(self, request: ConductorRequest, workflow: str, id: str) -> HttpResponse:
        debugging.remove_breakpoint(workflow, id, request.actor.name)
        return NoContent()


class ContinueRun(ConductorView):
    """POST /api/debug/runs/{workflowId}/continue: let a stopped task continue.

    `action`: `continue`, `over` the step to the next one, `into` its sub-workflow, or `to` the step
    `taskReferenceName`. `input`, `output` and `variables` replace those of the task and of the run.
    """

    operations = {
        "post": ApiOperation(
            "Continue a stopped run", permission=can_debug_run, reply=NO_CONTENT, body=CONTINUE_REQUEST
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        found, reason = parse_continue_request(request_body.read_object(request))
        debugging.continue_run(workflow, found, request.actor.name, reason)
        return NoContent()


class EvaluateExpression(ConductorView):
    """POST /api/debug/runs/{workflowId}/evaluate: evaluate an expression in a run. Masked values are `***`."""

    operations = {
        "post": ApiOperation(
            "Evaluate an expression in a run", permission=can_view_run, reply=EXPRESSION_VALUE, body=EXPRESSION
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        return Json({"value": evaluate_expression(workflow, parse_expression(request_body.read_object(request)))})


class DefinitionBreakpoints(ConductorView):
    """GET, POST /api/debug/workflows/{name}/versions/{version}/breakpoints: list or set those of future runs."""

    operations = {
        "get": ApiOperation(
            "List the breakpoints of a workflow", permission=can_view_workflow, reply=ArrayOf(SET_BREAKPOINT)
        ),
        "post": ApiOperation(
            "Set a breakpoint on a workflow", permission=can_debug_workflow, reply=BREAKPOINT_ID, body=BREAKPOINT
        ),
    }

    def get(self, request: ConductorRequest, name: str, version: int) -> HttpResponse:
        debug = {"breakpoints": _find_definition(name, version).breakpoints}
        return Json([breakpoint_document(each) for each in live_breakpoints_of(debug, clock.now())])

    def post(self, request: ConductorRequest, name: str, version: int) -> HttpResponse:
        found, reason = parse_breakpoint(request_body.read_object(request))
        return Json({"id": debugging.set_definition_breakpoint(name, version, found, request.actor.name, reason)})


class DefinitionBreakpoint(ConductorView):
    """DELETE /api/debug/workflows/{name}/versions/{version}/breakpoints/{id}: remove one. Started runs keep it."""

    operations = {
        "delete": ApiOperation("Remove a breakpoint from a workflow", permission=can_debug_workflow, reply=NO_CONTENT),
    }

    def delete(self, request: ConductorRequest, name: str, version: int, id: str) -> HttpResponse:
        debugging.remove_definition_breakpoint(name, version, id, request.actor.name)
        return NoContent()


def _find_definition(name: str, version: int) -> WorkflowDefinition:
    row = find_row(name, version)
    if row is None:
        raise NotFound(f"No such workflow found by name: {name}, version {version}")
    return row
