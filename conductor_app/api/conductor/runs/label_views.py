"""Views of labels on workflows, an extension of Conductor's API.

A start request sets `labels`; these views add and remove them.
"""

from django.http import HttpResponse

from ....core.document.checks.values import texts
from ....engine.runs import labels
from ....insight.runs.execution import find_run
from ....models import RunLabel
from .. import request_body
from ..api_operation import ApiOperation
from ..permissions import can_control_run, can_view_run
from ..replies import Json
from ..view import ConductorRequest, ConductorView


class WorkflowLabels(ConductorView):
    """GET, PUT, DELETE /api/workflow/{workflowId}/labels: get, add or remove labels. The reply has all labels."""

    operations = {
        "get": ApiOperation("List the labels of a workflow", permission=can_view_run, reply=texts),
        "put": ApiOperation("Add labels to a workflow", permission=can_control_run, reply=texts, body=texts),
        "delete": ApiOperation("Remove labels from a workflow", permission=can_control_run, reply=texts, body=texts),
    }

    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        return _labels_of(find_run(workflow).pk)

    def put(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        labels.add_labels(workflow, request_body.read_texts(request), request.actor.name)
        return _labels_of(workflow)

    def delete(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        labels.remove_labels(workflow, request_body.read_texts(request), request.actor.name)
        return _labels_of(workflow)


def _labels_of(run_id: str) -> Json:
    return Json(list(RunLabel.objects.filter(run_id=run_id).order_by("name").values_list("name", flat=True)))
