"""Workflows: started and looked at."""

from django.http import HttpResponse

from ....engine import runs
from ....insight.execution import find_run, wire_runs
from ....models import Run
from .. import body
from ..replies import Json, PlainText
from ..serializers.requests import complaints_at
from ..serializers.workflows import start_by_name, start_request, workflow_status
from ..view import ConductorRequest, ConductorView


class Workflows(ConductorView):
    """POST /api/workflow: start a workflow."""

    def post(self, request: ConductorRequest) -> HttpResponse:
        asked = start_request(body.document(request))
        with complaints_at("startWorkflow.startWorkflowRequest.workflowDef"):
            return PlainText(runs.start(asked, request.actor.name))


class WorkflowByName(ConductorView):
    """POST /api/workflow/{name}: start a workflow; the body is its input. GET: a workflow by its id.

    The two share an address, so the one class holds both.
    """

    def post(self, request: ConductorRequest, name: str) -> HttpResponse:
        asked = start_by_name(name, request.query, body.document(request))
        return PlainText(runs.start(asked, request.actor.name))

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        found = wire_runs(Run.objects.filter(pk=name), request.query.flag("includeTasks", True))
        return Json(found[0] if found else find_run(name))

    def delete(self, request: ConductorRequest, name: str) -> HttpResponse:
        return Empty()
