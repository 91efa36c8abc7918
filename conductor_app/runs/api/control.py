"""Views that control running workflows, continue ended ones, and change their course or state."""

from django.http import HttpResponse

from ...access.permissions import DELETE, WORKFLOW
from ...core.document.fields import read_mapping
from ...core.errors import NotFound
from ...core.states import RUN
from ...tasks.commands.waits import WaitOutcome, begin_run_wait
from ...web.api import documents as shapes
from ...web.api import permissions as targets
from ...web.api import requests as request_body
from ...web.api.operations import (
    NO_CONTENT,
    PLAIN_TEXT,
    REASON_QUERY,
    REMOVAL_QUERY,
    WAIT_QUERY,
    ApiOperation,
    Json,
    PlainText,
)
from ...web.api.permissions import can_control_and_view_run, can_control_run, requires
from ...web.api.requests import read_request
from ...web.api.view import ConductorRequest, ConductorView
from ...web.client_views import reply_after, waiting_client
from ..commands import control, repair
from ..documents.workflows import find_run, wire_run
from . import serializers
from .executions import none_to_empty, parse_wait, signal_response
from .serializers import (
    RERUN_REQUEST,
    SKIP_REQUEST,
    STATE_UPDATE,
    UPGRADE,
    check_upgrade,
    parse_rerun_request,
    parse_skip_request,
    parse_state_update,
    step_reference,
)

can_remove_run = requires(DELETE, WORKFLOW, targets.run_in_address("workflow"))


class Decide(ConductorView):
    """PUT /api/workflow/decide/{workflowId}: evaluate the workflow now."""

    @ApiOperation("Reevaluate a workflow", can_control_run)
    def put(self, request: ConductorRequest, workflow: str) -> None:
        repair.reevaluate_run(workflow, request.actor.name)


class Pause(ConductorView):
    """PUT /api/workflow/{workflowId}/pause: pause the workflow, so that no new task is scheduled."""

    @ApiOperation("Pause a workflow", can_control_run)
    def put(self, request: ConductorRequest, workflow: str) -> None:
        control.pause_run(workflow, request.actor.name)


class Resume(ConductorView):
    """PUT /api/workflow/{workflowId}/resume: resume the paused workflow."""

    @ApiOperation("Resume a workflow", can_control_run)
    def put(self, request: ConductorRequest, workflow: str) -> None:
        control.resume_run(workflow, request.actor.name)


class Remove(ConductorView):
    """DELETE /api/workflow/{workflowId}/remove: delete the workflow.

    Its sub-workflows are deleted only with `cascade`.
    """

    @ApiOperation("Remove a workflow", can_remove_run, query=REMOVAL_QUERY)
    def delete(self, request: ConductorRequest, workflow: str) -> None:
        archive, cascade = request.query.flag("archiveWorkflow", True), request.query.flag("cascade", False)
        control.remove_with_descendants(workflow, request.actor.name, archive=archive, cascade=cascade)


class RetryWorkflow(ConductorView):
    """POST /api/workflow/{workflowId}/retry: retry the failed tasks."""

    @ApiOperation(
        "Retry the failed tasks of a workflow",
        can_control_run,
        reply=NO_CONTENT,
        query={"resumeSubworkflowTasks": bool},
    )
    def post(self, request: ConductorRequest, workflow: str) -> None:
        require_ended(workflow)
        with_children = request.query.flag("resumeSubworkflowTasks", False)
        repair.retry(workflow, request.actor.name, resume_children=with_children)


class Restart(ConductorView):
    """POST /api/workflow/{workflowId}/restart: restart from the beginning, optionally with the newest definition."""

    @ApiOperation("Restart a workflow", can_control_run, reply=NO_CONTENT, query={"useLatestDefinitions": bool})
    def post(self, request: ConductorRequest, workflow: str) -> None:
        with_latest = request.query.flag("useLatestDefinitions", False)
        repair.restart(workflow, request.actor.name, latest_definitions=with_latest)


class RerunWorkflow(ConductorView):
    """POST /api/workflow/{workflowId}/rerun: rerun from one of the tasks, or from the start."""

    @ApiOperation(
        "Rerun a workflow from a task or from its start", can_control_run, reply=PLAIN_TEXT, body=RERUN_REQUEST
    )
    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        rerun_request = parse_rerun_request(request_body.read_object(request))
        repair.rerun(workflow, request.actor.name, **rerun_request)
        return PlainText(workflow)


def require_ended(workflow: str) -> None:
    """Refuse to retry an open workflow with 404, as the original does (api §1.2).

    Raises:
        NotFound: when the workflow is open.
    """
    status = find_run(workflow).status
    if status in RUN.open:
        raise NotFound(f"Workflow {workflow} is {status} and cannot be retried before it has ended.")


class Skip(ConductorView):
    """PUT /api/workflow/{workflowId}/skiptask/{taskRef}: skip a step that has not started.

    Its task becomes SKIPPED, with the input and output of the request. A fork is skipped with its branches and its
    join. `ref__2` means the second iteration of the loop around it; without an iteration, the current one.
    """

    @ApiOperation(
        "Skip a task that has not started",
        can_control_run,
        body=SKIP_REQUEST,
        query={"skipTaskRequest": str, "taskReferenceName": str},
    )
    def put(self, request: ConductorRequest, workflow: str, ref: str) -> None:
        input, output = parse_skip_request(request, request.query)
        repair.skip_step(workflow, step_reference(ref, request.query), request.actor.name, input=input, output=output)


class Jump(ConductorView):
    """POST /api/workflow/{workflowId}/jump/{taskRef}: continue at a later step, with the inputs of the request.

    The steps before it become SKIPPED; parallel branches continue.
    """

    @ApiOperation(
        "Continue a workflow at a later task", can_control_run, body=read_mapping, query={"taskReferenceName": str}
    )
    def post(self, request: ConductorRequest, workflow: str, ref: str) -> None:
        inputs = request_body.read_object(request) if request_body.read_bytes(request) else {}
        repair.jump_to_step(workflow, step_reference(ref, request.query), request.actor.name, input=inputs)


class Variables(ConductorView):
    """POST /api/workflow/{workflowId}/variables: set variables and keep the others. The reply is the workflow."""

    @ApiOperation(
        "Update the variables of a workflow", can_control_and_view_run, reply=shapes.WORKFLOW, body=read_mapping
    )
    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        variables = request_body.read_object(request) if request_body.read_bytes(request) else {}
        repair.set_variables(workflow, variables, request.actor.name)
        return Json(wire_run(workflow))


class State(ConductorView):
    """POST /api/workflow/{workflowId}/state: set variables and report on a task in one transaction.

    Returns the workflow. If the query has a duration or task references, the response waits as that of an execution
    does.
    """

    @ApiOperation(
        "Update the variables and a task of a workflow",
        can_control_and_view_run,
        reply=serializers.SIGNAL_RESPONSE,
        body=STATE_UPDATE,
        query=WAIT_QUERY,
    )
    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        update, by, wait_request = (
            parse_state_update(request_body.read_object(request)),
            request.actor.name,
            parse_wait(request.query),
        )
        repair.update_state(workflow, update.variables, update.report, by, ref=update.ref, attempt_id=update.attempt_id)
        wants_to_wait = none_to_empty(request.query.text("waitUntilTaskRef")) or none_to_empty(
            request.query.text("waitForSeconds")
        )
        if not wants_to_wait:
            return Json(signal_response(workflow, WaitOutcome(workflow), wait_request))
        wait = begin_run_wait(workflow, wait_request.seconds, wait_request.refs, waiting_client(request))
        return reply_after(request, wait, lambda stop: Json(signal_response(workflow, stop, wait_request)))


class Upgrade(ConductorView):
    """POST /api/workflow/{workflowId}/upgrade: move a running workflow to another version of its definition.

    Tasks whose references exist in both versions stay; steps before the current position become SKIPPED, with the
    outputs of the request; open tasks without a step in the new version are canceled. An upgrade that is impossible is
    refused with the reasons.
    """

    @ApiOperation("Move a running workflow to another version", can_control_run, body=UPGRADE)
    def post(self, request: ConductorRequest, workflow: str) -> None:
        upgrade = read_request(
            request_body.read_object(request), UPGRADE, "upgradeRunningWorkflow.upgradeRequest", check_upgrade
        )
        repair.upgrade_run(
            workflow,
            upgrade["name"],
            upgrade.get("version") or None,
            request.actor.name,
            outputs=upgrade["taskOutput"],
            input=upgrade["workflowInput"],
        )


class ResetCallbacks(ConductorView):
    """POST /api/workflow/{workflowId}/resetcallbacks: make delayed tasks available to workers at once."""

    @ApiOperation("Make the delayed tasks of a workflow available now", can_control_run, reply=NO_CONTENT)
    def post(self, request: ConductorRequest, workflow: str) -> None:
        repair.reset_callbacks(workflow, request.actor.name)


class TerminateRemove(ConductorView):
    """DELETE /api/workflow/{workflowId}/terminate-remove: terminate the workflow and delete it.

    `cascade`: delete its sub-workflows too, recursively.
    """

    @ApiOperation("Terminate and remove a workflow", can_remove_run, query={**REASON_QUERY, **REMOVAL_QUERY})
    def delete(self, request: ConductorRequest, workflow: str) -> None:
        archive, cascade = (request.query.flag("archiveWorkflow", True), request.query.flag("cascade", False))
        reason = request.query.text("reason")
        control.terminate_and_remove(workflow, request.actor.name, reason, archive=archive, cascade=cascade)
