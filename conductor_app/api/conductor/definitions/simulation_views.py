"""View that executes a test workflow without workers. Its result can be read like a run for a day."""

from django.http import HttpResponse

from ....engine.definitions.workflow_tests import test_workflow
from .. import request_body
from ..api_operation import ApiOperation
from ..openapi import tables as shapes
from ..permissions import can_start_workflow
from ..replies import Json
from ..request_fields import errors_under
from ..view import ConductorRequest, ConductorView
from .simulation_serializers import TEST_REQUEST, parse_test_request


class TestWorkflow(ConductorView):
    """POST /api/workflow/test: execute a workflow with the mock results of the request.

    A list for a task has the results of its attempts, in order, in all iterations of a loop; a list for `ref__2` is for
    that iteration. The test ends with the workflow, or at the first task without a mock result.
    """

    operations = {
        "post": ApiOperation(
            "Simulate a workflow with mocked task results",
            permission=can_start_workflow,
            reply=shapes.WORKFLOW,
            body=TEST_REQUEST,
        ),
    }

    def post(self, request: ConductorRequest) -> HttpResponse:
        start_request, script = parse_test_request(request_body.read_object(request))
        with errors_under("testWorkflow.request.workflowDef"):
            return Json(test_workflow(start_request, script, request.actor.name))
