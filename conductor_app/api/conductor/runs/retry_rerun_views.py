"""Views that continue an ended workflow."""

from django.http import HttpResponse

from ....core.errors import NotFound
from ....core.states import RUN
from ....engine.runs import run_commands
from ....insight.runs.execution import find_run
from .. import request_body
from ..api_operation import NO_CONTENT, PLAIN_TEXT, ApiOperation
from ..permissions import can_control_run
from ..replies import NoContent, PlainText
from ..view import ConductorRequest, ConductorView
from .rerun_serializers import RERUN_REQUEST, parse_rerun_request


class RetryWorkflow(ConductorView):
    """POST /api/workflow/{workflowId}/retry: retry the failed tasks."""

    operations = {
        "post": ApiOperation(
            "Retry the failed tasks of a workflow",
            permission=can_control_run,
            reply=NO_CONTENT,
            query={"resumeSubworkflowTasks": bool},
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        require_ended(workflow)
        with_children = request.query.flag("resumeSubworkflowTasks", False)
        run_commands.retry(workflow, request.actor.name, resume_children=with_children)
        return NoContent()


class Restart(ConductorView):
    """POST /api/workflow/{workflowId}/restart: restart from the beginning, optionally with the newest definition."""

    operations = {
        "post": ApiOperation(
            "Restart a workflow", permission=can_control_run, reply=NO_CONTENT, query={"useLatestDefinitions": bool}
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        with_latest = request.query.flag("useLatestDefinitions", False)
        run_commands.restart(workflow, request.actor.name, latest_definitions=with_latest)
        return NoContent()


class RerunWorkflow(ConductorView):
    """POST /api/workflow/{workflowId}/rerun: rerun from one of the tasks, or from the start."""

    operations = {
        "post": ApiOperation(
            "Rerun a workflow from a task or from its start",
            permission=can_control_run,
            reply=PLAIN_TEXT,
            body=RERUN_REQUEST,
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        rerun_request = parse_rerun_request(request_body.read_object(request))
        run_commands.rerun(workflow, request.actor.name, **rerun_request)
        return PlainText(workflow)


def require_ended(workflow: str) -> None:
    """Refuse to retry an open workflow with 404, as the original does (api §1.2).

    Raises:
        NotFound: when the workflow is open.
    """
    status = find_run(workflow).status
    if status in RUN.open:
        raise NotFound(f"Workflow {workflow} is {status} and cannot be retried before it has ended.")
