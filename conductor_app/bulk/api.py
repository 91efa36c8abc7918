"""Views of bulk requests. Each workflow is processed separately, and the response has the result of each."""

from collections.abc import Callable
from functools import partial

from django.http import HttpResponse

from ..access.authentication import Target
from ..access.permissions import DELETE, WORKFLOW_DEF
from ..access.permissions import WORKFLOW as WORKFLOW_TARGET
from ..access.quotas import SEARCHES
from ..core.document.fields import FieldSpec, IntegerOf, ListOf, MapOf, NamedTable, ObjectOf, read_text, texts
from ..runs.api.control import require_ended
from ..runs.api.serializers import parse_bulk_ids
from ..runs.commands import control
from ..runs.commands import repair as run_commands_repair
from ..runs.documents.workflows import find_run, wire_runs
from ..runs.models import Run
from ..web.api import documents as shapes
from ..web.api import requests as request_body
from ..web.api.documents import WORKFLOW
from ..web.api.operations import REASON_QUERY, REMOVAL_QUERY, ApiOperation, Json
from ..web.api.permissions import (
    RUN_CONTROL_RIGHTS,
    RUN_VIEW_RIGHTS,
    RequiresAccess,
    find_run_names,
    normalize_name,
    requires,
)
from ..web.api.view import ConductorRequest, ConductorView
from .commands import MAX_IDS, apply_to_each


def runs_in_body(request: ConductorRequest, url_kwargs: dict[str, str]) -> list[Target]:
    """Return the runs whose ids the body lists. An invalid body is reported by the view."""
    ids = request_body.read_json(request)
    asked_for = [normalize_name(each) for each in ids if isinstance(each, str)] if isinstance(ids, list) else []
    return [{WORKFLOW_TARGET: id, WORKFLOW_DEF: name} for id, name in find_run_names(asked_for)]


can_control_runs, can_remove_runs = (
    RequiresAccess(RUN_CONTROL_RIGHTS, runs_in_body),
    requires(DELETE, WORKFLOW_TARGET, runs_in_body),
)
can_view_runs = RequiresAccess(RUN_VIEW_RIGHTS, runs_in_body)


FOUND_WORKFLOW = NamedTable("WorkflowModel", *WORKFLOW, FieldSpec("updatedTime", IntegerOf(64)))
BULK_WORKFLOWS = NamedTable(
    "BulkResponseWorkflow",
    FieldSpec("bulkErrorResults", MapOf(read_text)),
    FieldSpec("bulkSuccessfulResults", ListOf(ObjectOf(FOUND_WORKFLOW))),
)


def bulk_response(request: ConductorRequest, path: str, command: Callable[[str], object]) -> HttpResponse:
    """Run a command on each workflow that the body names, and return the results."""
    results = apply_to_each(parse_bulk_ids(request_body.read_json(request), path, MAX_IDS), command)
    return Json({"bulkErrorResults": results.errors, "bulkSuccessfulResults": results.done})


class BulkPause(ConductorView):
    """PUT /api/workflow/bulk/pause: pause workflows, so that no new task is scheduled."""

    @ApiOperation("Pause several workflows", can_control_runs, reply=shapes.BULK, body=texts)
    def put(self, request: ConductorRequest) -> HttpResponse:
        return bulk_response(request, "pauseWorkflow.workflowIds", partial(control.pause_run, by=request.actor.name))


class BulkResume(ConductorView):
    """PUT /api/workflow/bulk/resume: resume paused workflows."""

    @ApiOperation("Resume several workflows", can_control_runs, reply=shapes.BULK, body=texts)
    def put(self, request: ConductorRequest) -> HttpResponse:
        return bulk_response(request, "resumeWorkflow.workflowIds", partial(control.resume_run, by=request.actor.name))


class BulkRetry(ConductorView):
    """POST /api/workflow/bulk/retry: retry the failed tasks of workflows."""

    @ApiOperation("Retry several workflows", can_control_runs, reply=shapes.BULK, body=texts)
    def post(self, request: ConductorRequest) -> HttpResponse:
        by = request.actor.name

        def retry(workflow: str) -> None:
            require_ended(workflow)
            run_commands_repair.retry(workflow, by)

        return bulk_response(request, "retry.workflowIds", retry)


class BulkRestart(ConductorView):
    """POST /api/workflow/bulk/restart: restart workflows, optionally with the newest definitions."""

    @ApiOperation(
        "Restart several workflows",
        can_control_runs,
        reply=shapes.BULK,
        body=texts,
        query={"useLatestDefinitions": bool},
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        with_latest = request.query.flag("useLatestDefinitions", False)
        restart = partial(run_commands_repair.restart, by=request.actor.name, latest_definitions=with_latest)
        return bulk_response(request, "restart.workflowIds", restart)


class BulkTerminate(ConductorView):
    """POST /api/workflow/bulk/terminate: end the runs."""

    @ApiOperation(
        "Terminate several workflows",
        can_control_runs,
        reply=shapes.BULK,
        body=texts,
        query=REASON_QUERY | {"triggerFailureWorkflow": bool},
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        reason, with_failure = request.query.text("reason"), request.query.flag("triggerFailureWorkflow", False)
        terminate = partial(control.terminate_run, by=request.actor.name, reason=reason, with_failure=with_failure)
        return bulk_response(request, "terminate.workflowIds", terminate)


class BulkRemove(ConductorView):
    """DELETE /api/workflow/bulk/remove: delete workflows, with `cascade` their sub-workflows too."""

    @ApiOperation("Remove several workflows", can_remove_runs, reply=shapes.BULK, body=texts, query=REMOVAL_QUERY)
    def delete(self, request: ConductorRequest) -> HttpResponse:
        return remove_named(request)


class BulkDelete(ConductorView):
    """POST /api/workflow/bulk/delete: delete workflows, for clients whose DELETE has no body."""

    @ApiOperation(
        "Remove several workflows with POST", can_remove_runs, reply=shapes.BULK, body=texts, query=REMOVAL_QUERY
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        return remove_named(request)


def remove_named(request: ConductorRequest) -> HttpResponse:
    archive, cascade = request.query.flag("archiveWorkflow", True), request.query.flag("cascade", False)
    remove = partial(control.remove_with_descendants, by=request.actor.name, archive=archive, cascade=cascade)
    return bulk_response(request, "deleteWorkflow.workflowIds", remove)


class BulkTerminateRemove(ConductorView):
    """DELETE /api/workflow/bulk/terminate-remove: terminate workflows and delete them."""

    @ApiOperation(
        "Terminate and remove several workflows",
        can_remove_runs,
        reply=shapes.BULK,
        body=texts,
        query={**REASON_QUERY, **REMOVAL_QUERY},
    )
    def delete(self, request: ConductorRequest) -> HttpResponse:
        archive, cascade = request.query.flag("archiveWorkflow", True), request.query.flag("cascade", False)
        facts = {"by": request.actor.name, "reason": request.query.text("reason")}
        command = partial(control.terminate_and_remove, **facts, archive=archive, cascade=cascade)
        return bulk_response(request, "terminateRemove.workflowIds", command)


class BulkSearch(ConductorView):
    """POST /api/workflow/bulk/search: return the workflows with the given ids, as far as they exist."""

    @ApiOperation(
        "Get several workflows by their ids",
        can_view_runs,
        reply=BULK_WORKFLOWS,
        body=texts,
        query={"includeTasks": bool},
        rate=SEARCHES,
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        ids = parse_bulk_ids(request_body.read_json(request), "searchWorkflow.workflowIds", MAX_IDS)
        found = wire_runs(Run.objects.filter(pk__in=set(ids)), request.query.flag("includeTasks", True))
        by_id = {run["workflowId"]: run | {"updatedTime": run["updateTime"]} for run in found}
        results = apply_to_each((id for id in ids if id not in by_id), find_run)
        known = [by_id[id] for id in dict.fromkeys(ids) if id in by_id]
        return Json({"bulkErrorResults": results.errors, "bulkSuccessfulResults": known})
