"""Views that find workflows by their correlation ids."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from django.http import HttpResponse

from ....core.document.checks.values import texts
from ....insight.runs.execution import wire_runs
from ....models import Run
from .. import request_body
from ..api_operation import INCLUDE_QUERY, ApiOperation, ArrayOf, ArraysByKey
from ..openapi import tables as shapes
from ..permissions import can_view_correlated_workflows, can_view_runs_of_workflow
from ..replies import Json
from ..request_fields import read_request
from ..view import ConductorRequest, ConductorView
from .skip_jump_serializers import CORRELATION, no_check

CHUNK_SIZE = 500
"""Correlation ids that one query looks for."""


class Correlated(ConductorView):
    """GET /api/workflow/{name}/correlated/{correlationId}: list the workflows of a name with a correlation id."""

    operations = {
        "get": ApiOperation(
            "List workflows with a correlation id",
            permission=can_view_runs_of_workflow,
            reply=ArrayOf(shapes.WORKFLOW),
            query=INCLUDE_QUERY,
        ),
    }

    def get(self, request: ConductorRequest, workflow: str, correlation_id: str) -> HttpResponse:
        return Json(running_by_correlation_id(request, [workflow], [correlation_id])[correlation_id])


class CorrelatedMany(ConductorView):
    """POST, GET /api/workflow/{name}/correlated: list the workflows of a name by correlation id."""

    operations = {
        "post": ApiOperation(
            "List workflows with any of several correlation ids",
            permission=can_view_runs_of_workflow,
            reply=ArraysByKey(shapes.WORKFLOW),
            body=texts,
            query=INCLUDE_QUERY,
        ),
        "get": ApiOperation(
            "List workflows with any of several correlation ids, given in the query",
            permission=can_view_runs_of_workflow,
            reply=ArraysByKey(shapes.WORKFLOW),
            query=INCLUDE_QUERY | {"correlationIds": str},
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        return Json(running_by_correlation_id(request, [workflow], request_body.read_texts(request)))

    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        # One client asks so, and repeats the ids in the query or sends them as a body.
        requested = request.query.texts("correlationIds") or request.query.texts("correlationId")
        if not requested and request_body.read_bytes(request):
            requested = request_body.read_texts(request)
        return Json(running_by_correlation_id(request, [workflow], requested))


class CorrelatedBatch(ConductorView):
    """POST /api/workflow/correlated/batch: list the workflows of several names by correlation id."""

    operations = {
        "post": ApiOperation(
            "List workflows with any of several names and correlation ids",
            permission=can_view_correlated_workflows,
            reply=ArraysByKey(shapes.WORKFLOW),
            body=shapes.CORRELATION,
            query=INCLUDE_QUERY,
        ),
    }

    def post(self, request: ConductorRequest) -> HttpResponse:
        requested = read_request(
            request_body.read_object(request), CORRELATION, "getWorkflows.correlationIdsSearchRequest", no_check
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
