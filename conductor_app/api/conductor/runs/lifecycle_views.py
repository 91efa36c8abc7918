"""Views that control a running workflow."""

from django.http import HttpResponse

from ....engine.runs import removals, run_commands, skip_and_jump
from ..api_operation import EMPTY_REPLY, REMOVAL_QUERY, ApiOperation
from ..permissions import can_control_run, can_remove_run
from ..replies import EmptyOk
from ..view import ConductorRequest, ConductorView


class Decide(ConductorView):
    """PUT /api/workflow/decide/{workflowId}: evaluate the workflow now."""

    operations = {
        "put": ApiOperation("Reevaluate a workflow", permission=can_control_run, reply=EMPTY_REPLY),
    }

    def put(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        skip_and_jump.reevaluate_run(workflow, request.actor.name)
        return EmptyOk()


class Pause(ConductorView):
    """PUT /api/workflow/{workflowId}/pause: pause the workflow, so that no new task is scheduled."""

    operations = {
        "put": ApiOperation("Pause a workflow", permission=can_control_run, reply=EMPTY_REPLY),
    }

    def put(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        run_commands.pause_run(workflow, request.actor.name)
        return EmptyOk()


class Resume(ConductorView):
    """PUT /api/workflow/{workflowId}/resume: resume the paused workflow."""

    operations = {
        "put": ApiOperation("Resume a workflow", permission=can_control_run, reply=EMPTY_REPLY),
    }

    def put(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        run_commands.resume_run(workflow, request.actor.name)
        return EmptyOk()


class Remove(ConductorView):
    """DELETE /api/workflow/{workflowId}/remove: delete the workflow.

    Its sub-workflows are deleted only with `cascade`.
    """

    operations = {
        "delete": ApiOperation("Remove a workflow", permission=can_remove_run, reply=EMPTY_REPLY, query=REMOVAL_QUERY),
    }

    def delete(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        archive, cascade = request.query.flag("archiveWorkflow", True), request.query.flag("cascade", False)
        removals.remove_with_descendants(workflow, request.actor.name, archive=archive, cascade=cascade)
        return EmptyOk()
