"""Views that start, read, find, label and terminate workflows, and that send messages to them.

Labels are an extension of Conductor's API.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from django.http import HttpResponse

from ...access.authentication import Target
from ...access.permissions import EXECUTE, READ, WORKFLOW_DEF
from ...core.document.fields import read_mapping, texts
from ...core.errors import NotFound
from ...core.validation.lint_fields import lint_document
from ...db.statements import read_snapshot
from ...definitions.simulation.commands import find_test
from ...web.api import documents as shapes
from ...web.api import permissions as targets
from ...web.api import requests as request_body
from ...web.api.operations import (
    INCLUDE_QUERY,
    PLAIN_TEXT,
    ApiOperation,
    ArrayOf,
    ArraysByKey,
    Json,
    PlainText,
    add_findings,
)
from ...web.api.permissions import can_control_run, can_start_workflow, can_view_run, normalize_name, requires
from ...web.api.requests import errors_under, parse_integer, read_object, read_request
from ...web.api.view import ConductorRequest, ConductorView
from ..commands import control, messages
from ..commands.start import start_run
from ..documents.tasks import attempts_of, load_rows, run_facts_of, task_documents
from ..documents.workflows import find_run, wire_run, wire_runs
from ..models import Run, RunLabel
from . import serializers
from .serializers import CORRELATION, START_REQUEST, parse_start_by_name, parse_start_request, workflow_status_document


def correlated_definitions(request: ConductorRequest, url_kwargs: dict[str, str]) -> list[Target]:
    """Return the definitions whose runs are searched by correlation ids."""
    names = request_body.read_object(request).get("workflowNames")
    return [{WORKFLOW_DEF: normalize_name(name)} for name in (names if isinstance(names, list) else [names])]


can_view_runs_of_workflow = requires(READ, WORKFLOW_DEF, targets.named_in_address(WORKFLOW_DEF, "workflow"))
can_start_workflow_in_address = requires(EXECUTE, WORKFLOW_DEF, targets.named_in_address(WORKFLOW_DEF, "workflow"))
can_view_correlated_workflows = requires(READ, WORKFLOW_DEF, correlated_definitions)


class Workflows(ConductorView):
    """POST /api/workflow: start a workflow."""

    @ApiOperation("Start a workflow", can_start_workflow, reply=PLAIN_TEXT, body=START_REQUEST, reports_findings=True)
    def post(self, request: ConductorRequest) -> HttpResponse:
        document = request_body.read_object(request)
        start_request = parse_start_request(document, request.headers)
        with errors_under("startWorkflow.startWorkflowRequest.workflowDef"):
            reply = PlainText(start_run(start_request, request.actor.name))
        return add_findings(reply, list(lint_document(document, START_REQUEST)))


class StartVersion(ConductorView):
    """POST /api/workflow/start/{name}/{version}: start this version of a workflow; 0 is the newest."""

    @ApiOperation(
        "Start a version of a workflow", can_start_workflow, reply=PLAIN_TEXT, body=START_REQUEST, reports_findings=True
    )
    def post(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        body = request_body.read_object(request) if request_body.read_bytes(request) else {}
        start_request = parse_start_request(
            {**body, "name": name, "version": parse_integer(version, "The version") or None}, request.headers
        )
        with errors_under("startWorkflow.startWorkflowRequest.workflowDef"):
            reply = PlainText(start_run(start_request, request.actor.name))
        return add_findings(reply, list(lint_document(body, START_REQUEST)))


class WorkflowOne(ConductorView):
    """POST /api/workflow/{name}: start a workflow. GET, DELETE /api/workflow/{workflowId}: show it, stop it."""

    @ApiOperation(
        "Start a workflow by name",
        can_start_workflow_in_address,
        reply=PLAIN_TEXT,
        body=read_mapping,
        query={"version": int, "correlationId": str, "priority": int},
    )
    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        start_request = parse_start_by_name(workflow, request.query, request_body.read_object(request), request.headers)
        return PlainText(start_run(start_request, request.actor.name))

    @ApiOperation("Get a workflow", can_view_run, reply=shapes.WORKFLOW, query={"includeTasks": bool})
    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        with_tasks = request.query.flag("includeTasks", True)
        try:
            return Json(wire_run(workflow, with_tasks))
        except NotFound:
            document = find_test(workflow)
            return Json(document if with_tasks else {**document, "tasks": []})

    @ApiOperation("Terminate a workflow", can_control_run, query={"reason": str, "triggerFailureWorkflow": bool})
    def delete(self, request: ConductorRequest, workflow: str) -> None:
        reason, with_failure = request.query.text("reason"), request.query.flag("triggerFailureWorkflow", False)
        control.terminate_run(workflow, request.actor.name, reason, with_failure)


class WorkflowStatus(ConductorView):
    """GET /api/workflow/{workflowId}/status: return the status, and output and variables if requested."""

    @ApiOperation(
        "Get the status of a workflow",
        can_view_run,
        reply=serializers.STATUS,
        query={"includeOutput": bool, "includeVariables": bool},
    )
    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        with_output, with_variables = (request.query.flag(f"include{part}", False) for part in ("Output", "Variables"))
        run = find_run(workflow, ["output"] * with_output + ["variables"] * with_variables)
        return Json(workflow_status_document(run, with_output=with_output, with_variables=with_variables))


class WorkflowTasks(ConductorView):
    """GET /api/workflow/{workflowId}/tasks: list a page of the tasks, optionally of some statuses only."""

    @ApiOperation(
        "List the tasks of a workflow",
        can_view_run,
        reply=serializers.TASK_PAGE,
        query={"start": int, "count": int, "status": str},
    )
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

    @ApiOperation(
        "List the ids of running workflows",
        can_view_runs_of_workflow,
        reply=texts,
        query={"version": int, "startTime": int, "endTime": int},
    )
    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        version, query = request.query.integer("version", 1), request.query
        start, end = query.integer("startTime", 0, bits=64), query.integer("endTime", 0, bits=64)
        found = Run.objects.of_definition(workflow)
        if start and end:
            found = found.filter(version=version, created_at__gte=start, created_at__lte=end)
        else:
            found = found.open()
        return Json(list(found.order_by("created_at", "id").values_list("id", flat=True)))


CHUNK_SIZE = 500
"""Correlation ids that one query looks for."""


class Correlated(ConductorView):
    """GET /api/workflow/{name}/correlated/{correlationId}: list the workflows of a name with a correlation id."""

    @ApiOperation(
        "List workflows with a correlation id",
        can_view_runs_of_workflow,
        reply=ArrayOf(shapes.WORKFLOW),
        query=INCLUDE_QUERY,
    )
    def get(self, request: ConductorRequest, workflow: str, correlation_id: str) -> HttpResponse:
        return Json(running_by_correlation_id(request, [workflow], [correlation_id])[correlation_id])


class CorrelatedMany(ConductorView):
    """POST, GET /api/workflow/{name}/correlated: list the workflows of a name by correlation id."""

    @ApiOperation(
        "List workflows with any of several correlation ids",
        can_view_runs_of_workflow,
        reply=ArraysByKey(shapes.WORKFLOW),
        body=texts,
        query=INCLUDE_QUERY,
    )
    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        return Json(running_by_correlation_id(request, [workflow], request_body.read_texts(request)))

    @ApiOperation(
        "List workflows with any of several correlation ids, given in the query",
        can_view_runs_of_workflow,
        reply=ArraysByKey(shapes.WORKFLOW),
        query=INCLUDE_QUERY | {"correlationIds": str},
    )
    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        # One client asks so, and repeats the ids in the query or sends them as a body.
        requested = request.query.texts("correlationIds") or request.query.texts("correlationId")
        if not requested and request_body.read_bytes(request):
            requested = request_body.read_texts(request)
        return Json(running_by_correlation_id(request, [workflow], requested))


class CorrelatedBatch(ConductorView):
    """POST /api/workflow/correlated/batch: list the workflows of several names by correlation id."""

    @ApiOperation(
        "List workflows with any of several names and correlation ids",
        can_view_correlated_workflows,
        reply=ArraysByKey(shapes.WORKFLOW),
        body=serializers.CORRELATION,
        query=INCLUDE_QUERY,
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        requested = read_request(
            request_body.read_object(request), CORRELATION, "getWorkflows.correlationIdsSearchRequest"
        )
        return Json(running_by_correlation_id(request, requested["workflowNames"], requested["correlationIds"]))


def running_by_correlation_id(
    request: ConductorRequest, names: Iterable[str], ids: Iterable[str]
) -> dict[str, list[dict[str, Any]]]:
    """Return the running workflows with these names by correlation id, and the ended ones too if requested.

    An empty id finds no workflow: it would match every workflow without a correlation id.
    """
    runs, wanted = Run.objects.all(), {name.replace("\0", "") for name in names}
    if not request.query.flag("includeClosed", False):
        runs = runs.filter(status="RUNNING")
    with_tasks = request.query.flag("includeTasks", False)
    found: dict[str, list[dict[str, Any]]] = {id: [] for id in ids}
    remaining = iter(filter(None, found))
    while chunk := list(islice(remaining, CHUNK_SIZE)):
        # Looked up without their names: SQLite would read all runs of a name instead.
        correlated = runs.filter(correlation_id__in=chunk).exclude(correlation_id="").values_list("id", "name")
        chosen = Run.objects.filter(pk__in=[id for id, name in correlated if name in wanted])
        for run in wire_runs(chosen.order_by("created_at", "id"), with_tasks):
            found[run["correlationId"]].append(run)
    return found


class WorkflowLabels(ConductorView):
    """GET, PUT, DELETE /api/workflow/{workflowId}/labels: get, add or remove labels. The reply has all labels."""

    @ApiOperation("List the labels of a workflow", can_view_run, reply=texts)
    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        return _labels_of(find_run(workflow).pk)

    @ApiOperation("Add labels to a workflow", can_control_run, reply=texts, body=texts)
    def put(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        control.add_labels(workflow, request_body.read_texts(request), request.actor.name)
        return _labels_of(workflow)

    @ApiOperation("Remove labels from a workflow", can_control_run, reply=texts, body=texts)
    def delete(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        control.remove_labels(workflow, request_body.read_texts(request), request.actor.name)
        return _labels_of(workflow)


def _labels_of(run_id: str) -> HttpResponse:
    return Json(list(RunLabel.objects.filter(run_id=run_id).order_by("name").values_list("name", flat=True)))


class WorkflowMessages(ConductorView):
    """POST /api/workflow/{workflowId}/messages: keep a message until a PULL_WORKFLOW_MESSAGES task takes it.

    A refusal has the shape of all others, where the original answers bare text (api §1.2): clients read its message.
    """

    @ApiOperation("Send a message to a running workflow", can_control_run, reply=PLAIN_TEXT, body=read_mapping)
    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        return PlainText(messages.send_inbox_message(workflow, read_object(request)))
