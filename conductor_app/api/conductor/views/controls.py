"""What operators do to a workflow that has been started."""

from django.http import HttpResponse

from ....core.errors import NotFound
from ....core.states import RUN
from ....engine import detours, removals, runs
from ....insight.execution import find_run
from ..replies import Empty, Nothing
from ..view import ConductorRequest, ConductorView


class Decide(ConductorView):
    """PUT /api/workflow/decide/{workflowId}: look again what is to be done next."""

    def put(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        detours.look_again(workflow, request.actor.name)
        return Empty()


class Pause(ConductorView):
    """PUT /api/workflow/{workflowId}/pause: schedule nothing new."""

    def put(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        runs.pause(workflow, request.actor.name)
        return Empty()


class Resume(ConductorView):
    """PUT /api/workflow/{workflowId}/resume: go on after a pause."""

    def put(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        runs.resume(workflow, request.actor.name)
        return Empty()


class Retry(ConductorView):
    """POST /api/workflow/{workflowId}/retry: try again what failed."""

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        refuse_open(workflow)
        with_children = request.query.flag("resumeSubworkflowTasks", False)
        runs.retry(workflow, request.actor.name, resume_children=with_children)
        return Nothing()


class Remove(ConductorView):
    """DELETE /api/workflow/{workflowId}/remove: forget the workflow.

    Its sub-workflows stay, unless `cascade` says that they go with it.
    """

    def delete(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        archive, cascade = request.query.flag("archiveWorkflow", True), request.query.flag("cascade", False)
        removals.remove_family(workflow, request.actor.name, archive=archive, cascade=cascade)
        return Empty()


def refuse_open(workflow: str) -> None:
    """Clients know a retry of what is still open as 404 (api §1.2)."""
    status = find_run(workflow).status
    if status in RUN.open:
        raise NotFound(f"Workflow {workflow} is {status}: there is nothing to retry before it has ended.")
