"""What operators do to a workflow that has ended, so that it goes on."""

from django.http import HttpResponse

from ....core.errors import NotFound
from ....core.states import RUN
from ....engine import runs
from ....insight.execution import find_run
from .. import body
from ..replies import Nothing, PlainText
from ..serializers.reruns import rerun_request
from ..view import ConductorRequest, ConductorView


class Retry(ConductorView):
    """POST /api/workflow/{workflowId}/retry: try again what failed."""

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        refuse_open(workflow)
        with_children = request.query.flag("resumeSubworkflowTasks", False)
        runs.retry(workflow, request.actor.name, resume_children=with_children)
        return Nothing()


class Restart(ConductorView):
    """POST /api/workflow/{workflowId}/restart: begin anew, with the newest definitions where that is asked for."""

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        with_latest = request.query.flag("useLatestDefinitions", False)
        runs.restart(workflow, request.actor.name, latest_definitions=with_latest)
        return Nothing()


class Rerun(ConductorView):
    """POST /api/workflow/{workflowId}/rerun: go on from one of the tasks, or from the start."""

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        asked = rerun_request(body.document(request))
        runs.rerun(workflow, request.actor.name, **asked)
        return PlainText(workflow)


def refuse_open(workflow: str) -> None:
    """Clients know a retry of what is still open as 404 (api §1.2)."""
    status = find_run(workflow).status
    if status in RUN.open:
        raise NotFound(f"Workflow {workflow} is {status}: there is nothing to retry before it has ended.")
