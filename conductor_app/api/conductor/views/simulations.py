"""Test workflows: no worker is asked, and nothing follows; the result can be read like a run for a day."""

from django.http import HttpResponse

from ....engine.workflow_tests import test_workflow
from .. import body
from ..replies import Json
from ..serializers.requests import complaints_at
from ..serializers.simulations import trial
from ..view import ConductorRequest, ConductorView


class WorkflowTest(ConductorView):
    """POST /api/workflow/test: the execution that a workflow comes to if its tasks come to what the request says.

    A list for a task is what its attempts come to, one after another, in all turns of a loop; a list for `ref__2` is
    for that turn. The test ends with the workflow, or at the first task for which nothing is written.
    """

    def post(self, request: ConductorRequest) -> HttpResponse:
        asked, script = trial(body.document(request))
        with complaints_at("testWorkflow.request.workflowDef"):
            return Json(test_workflow(asked, script, request.actor.name))
