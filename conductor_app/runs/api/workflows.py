"""Views that start, read and terminate workflows."""

from django.http import HttpResponse

from ....core.document.checks.values import read_mapping, texts
from ....core.document.lint import lint_document
from ....core.errors import NotFound
from ....engine.definitions.workflow_tests import find_test
from ....engine.runs import run_commands
from ....insight.runs.execution import attempts_of, find_run, load_rows, run_facts_of, task_documents, wire_run
from ....models import Run
from ....models.snapshots import read_snapshot
from .. import request_body
from ..api_operation import EMPTY_REPLY, PLAIN_TEXT, ApiOperation
from ..findings import add_findings
from ..openapi import tables as shapes
from ..permissions import (
    can_control_run,
    can_start_workflow,
    can_start_workflow_in_address,
    can_view_run,
    can_view_runs_of_workflow,
)
from ..query_parameters import parse_integer
from ..replies import EmptyOk, Json, PlainText
from ..request_fields import errors_under
from ..view import ConductorRequest, ConductorView
from .workflow_serializers import START_REQUEST, parse_start_by_name, parse_start_request, workflow_status_document


class Workflows(ConductorView):
    """POST /api/workflow: start a workflow."""

    operations = {
        "post": ApiOperation(
            "Start a workflow",
            permission=can_start_workflow,
            reply=PLAIN_TEXT,
            body=START_REQUEST,
            reports_findings=True,
        ),
    }

    def post(self, request: ConductorRequest) -> HttpResponse:
        document = request_body.read_object(request)
        start_request = parse_start_request(document)
        with errors_under("startWorkflow.startWorkflowRequest.workflowDef"):
            reply = PlainText(run_commands.start(start_request, request.actor.name))
        return add_findings(reply, list(lint_document(document, START_REQUEST)))


class StartVersion(ConductorView):
    """POST /api/workflow/start/{name}/{version}: start this version of a workflow; 0 is the newest."""

    operations = {
        "post": ApiOperation(
            "Start a version of a workflow",
            permission=can_start_workflow,
            reply=PLAIN_TEXT,
            body=START_REQUEST,
            reports_findings=True,
        ),
    }

    def post(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        body = request_body.read_object(request) if request_body.read_bytes(request) else {}
        start_request = parse_start_request(
            {**body, "name": name, "version": parse_integer(version, "The version") or None}
        )
        with errors_under("startWorkflow.startWorkflowRequest.workflowDef"):
            reply = PlainText(run_commands.start(start_request, request.actor.name))
        return add_findings(reply, list(lint_document(body, START_REQUEST)))


class WorkflowOne(ConductorView):
    """POST /api/workflow/{name}: start a workflow. GET, DELETE /api/workflow/{workflowId}: show it, stop it."""

    operations = {
        "post": ApiOperation(
            "Start a workflow by name",
            permission=can_start_workflow_in_address,
            reply=PLAIN_TEXT,
            body=read_mapping,
            query={"version": int, "correlationId": str, "priority": int},
        ),
        "get": ApiOperation(
            "Get a workflow", permission=can_view_run, reply=shapes.WORKFLOW, query={"includeTasks": bool}
        ),
        "delete": ApiOperation(
            "Terminate a workflow",
            permission=can_control_run,
            reply=EMPTY_REPLY,
            query={"reason": str, "triggerFailureWorkflow": bool},
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        start_request = parse_start_by_name(workflow, request.query, request_body.read_object(request), request.headers)
        return PlainText(run_commands.start(start_request, request.actor.name))

    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        with_tasks = request.query.flag("includeTasks", True)
        try:
            return Json(wire_run(workflow, with_tasks))
        except NotFound:
            document = find_test(workflow)
            return Json(document if with_tasks else {**document, "tasks": []})

    def delete(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        reason, with_failure = request.query.text("reason"), request.query.flag("triggerFailureWorkflow", False)
        run_commands.terminate_run(workflow, request.actor.name, reason, with_failure)
        return EmptyOk()


class WorkflowStatus(ConductorView):
    """GET /api/workflow/{workflowId}/status: return the status, and output and variables if requested."""

    operations = {
        "get": ApiOperation(
            "Get the status of a workflow",
            permission=can_view_run,
            reply=shapes.STATUS,
            query={"includeOutput": bool, "includeVariables": bool},
        ),
    }

    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        with_output, with_variables = (request.query.flag(f"include{part}", False) for part in ("Output", "Variables"))
        run = find_run(workflow, ["output"] * with_output + ["variables"] * with_variables)
        return Json(workflow_status_document(run, with_output=with_output, with_variables=with_variables))


class WorkflowTasks(ConductorView):
    """GET /api/workflow/{workflowId}/tasks: list a page of the tasks, optionally of some statuses only."""

    operations = {
        "get": ApiOperation(
            "List the tasks of a workflow",
            permission=can_view_run,
            reply=shapes.TASK_PAGE,
            query={"start": int, "count": int, "status": str},
        ),
    }

    @read_snapshot()
    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        run, query = find_run(workflow), request.query
        start, count = max(query.integer("start", 0), 0), max(query.integer("count", 15), 0)
        wanted_statuses = {status.strip().upper() for status in query.texts("status")}
        tasks = task_documents(load_rows(attempts_of([run.id])), run_facts_of(run), is_wire=True)
        found = [task for task in tasks if not wanted_statuses or task["status"] in wanted_statuses]
        return Json({"totalHits": len(found), "results": found[start : start + count]})


class Running(ConductorView):
    """GET /api/workflow/running/{name}: list the ids of open workflows, or of all that started in a period."""

    operations = {
        "get": ApiOperation(
            "List the ids of running workflows",
            permission=can_view_runs_of_workflow,
            reply=texts,
            query={"version": int, "startTime": int, "endTime": int},
        ),
    }

    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        version, query = request.query.integer("version", 1), request.query
        start, end = query.integer("startTime", 0, bits=64), query.integer("endTime", 0, bits=64)
        found = Run.objects.of_definition(workflow)
        if start and end:
            found = found.filter(version=version, created_at__gte=start, created_at__lte=end)
        else:
            found = found.open()
        return Json(list(found.order_by("created_at", "id").values_list("id", flat=True)))
