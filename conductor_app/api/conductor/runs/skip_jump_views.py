"""What leads a workflow off its written way, or tells it something from outside."""

from django.http import HttpResponse

from ....core.document.checks.values import read_mapping
from ....engine.runs import removals, skip_and_jump
from ....engine.runs.run_waits import WaitOutcome, wait_for_run
from ....insight.runs.execution import wire_run
from .. import request_body
from ..api_operation import EMPTY_REPLY, NO_CONTENT, REASON_QUERY, REMOVAL_QUERY, WAIT_QUERY, ApiOperation
from ..openapi import tables as shapes
from ..permissions import can_control_run, can_remove_run
from ..replies import EmptyOk, Json, NoContent
from ..request_fields import read_request
from ..view import ConductorRequest, ConductorView
from .execution_views import parse_wait
from .skip_jump_serializers import (
    SKIP_REQUEST,
    STATE_UPDATE,
    UPGRADE,
    check_upgrade,
    parse_skip_request,
    parse_state_update,
    step_reference,
)
from .wait_serializers import none_to_empty, signal_response


class Skip(ConductorView):
    """PUT /api/workflow/{workflowId}/skiptask/{taskRef}: pass over a step that has not begun.

    Its task becomes SKIPPED, with the input and output that are sent. A fork is passed over with its branches and its
    join. `ref__2` names the second turn of the loop around it; without a turn it is the present one.
    """

    operations = {
        "put": ApiOperation(
            "Skip a task that has not started",
            permission=can_control_run,
            reply=EMPTY_REPLY,
            body=SKIP_REQUEST,
            query={"skipTaskRequest": str, "taskReferenceName": str},
        ),
    }

    def put(self, request: ConductorRequest, workflow: str, ref: str) -> HttpResponse:
        input, output = parse_skip_request(request, request.query)
        skip_and_jump.skip_step(
            workflow, step_reference(ref, request.query), request.actor.name, input=input, output=output
        )
        return EmptyOk()


class Jump(ConductorView):
    """POST /api/workflow/{workflowId}/jump/{taskRef}: go on at a step further on, with the inputs that are sent.

    What lies before it becomes SKIPPED; branches beside it go on.
    """

    operations = {
        "post": ApiOperation(
            "Continue a workflow at a later task",
            permission=can_control_run,
            reply=EMPTY_REPLY,
            body=read_mapping,
            query={"taskReferenceName": str},
        ),
    }

    def post(self, request: ConductorRequest, workflow: str, ref: str) -> HttpResponse:
        inputs = request_body.read_object(request) if request_body.read_bytes(request) else {}
        skip_and_jump.jump_to_step(workflow, step_reference(ref, request.query), request.actor.name, input=inputs)
        return EmptyOk()


class Variables(ConductorView):
    """POST /api/workflow/{workflowId}/variables: lay variables over the workflow's own; the workflow as it is then."""

    operations = {
        "post": ApiOperation(
            "Update the variables of a workflow", permission=can_control_run, reply=shapes.WORKFLOW, body=read_mapping
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        variables = request_body.read_object(request) if request_body.read_bytes(request) else {}
        skip_and_jump.set_variables(workflow, variables, request.actor.name)
        return Json(wire_run(workflow))


class State(ConductorView):
    """POST /api/workflow/{workflowId}/state: variables and what a task came to, at once; the workflow as it is then.

    Where the query says for how long or for which tasks, the reply waits as that of an execution does.
    """

    operations = {
        "post": ApiOperation(
            "Update the variables and a task of a workflow",
            permission=can_control_run,
            reply=shapes.SIGNAL_RESPONSE,
            body=STATE_UPDATE,
            query=WAIT_QUERY,
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        update, by, wait_request = (
            parse_state_update(request_body.read_object(request)),
            request.actor.name,
            parse_wait(request.query),
        )
        skip_and_jump.update_state(
            workflow, update.variables, update.report, by, ref=update.ref, attempt_id=update.attempt_id
        )
        wants_to_wait = none_to_empty(request.query.text("waitUntilTaskRef")) or none_to_empty(
            request.query.text("waitForSeconds")
        )
        stop = (
            wait_for_run(workflow, wait_request.seconds, wait_request.refs) if wants_to_wait else WaitOutcome(workflow)
        )
        return Json(signal_response(workflow, stop, wait_request))


class Upgrade(ConductorView):
    """POST /api/workflow/{workflowId}/upgrade: let a running workflow follow another version of its definition.

    Tasks of references that are in both are kept; steps before where it stands become SKIPPED, with the outputs that
    are sent; open tasks that the other version does not have are canceled. What cannot be moved is refused, with why.
    """

    operations = {
        "post": ApiOperation(
            "Move a running workflow to another version", permission=can_control_run, reply=EMPTY_REPLY, body=UPGRADE
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        upgrade = read_request(
            request_body.read_object(request), UPGRADE, "upgradeRunningWorkflow.upgradeRequest", check_upgrade
        )
        skip_and_jump.upgrade_run(
            workflow,
            upgrade["name"],
            upgrade.get("version") or None,
            request.actor.name,
            outputs=upgrade["taskOutput"],
            input=upgrade["workflowInput"],
        )
        return EmptyOk()


class ResetCallbacks(ConductorView):
    """POST /api/workflow/{workflowId}/resetcallbacks: hand out at once what was handed back for later."""

    operations = {
        "post": ApiOperation(
            "Make the delayed tasks of a workflow available now", permission=can_control_run, reply=NO_CONTENT
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        skip_and_jump.reset_callbacks(workflow, request.actor.name)
        return NoContent()


class TerminateRemove(ConductorView):
    """DELETE /api/workflow/{workflowId}/terminate-remove: stop the workflow, then forget it.

    `cascade`: forget the sub-workflows too, and theirs.
    """

    operations = {
        "delete": ApiOperation(
            "Terminate and remove a workflow",
            permission=can_remove_run,
            reply=EMPTY_REPLY,
            query=REASON_QUERY | REMOVAL_QUERY,
        ),
    }

    def delete(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        archive, cascade = (request.query.flag("archiveWorkflow", True), request.query.flag("cascade", False))
        reason = request.query.text("reason")
        removals.terminate_and_remove(workflow, request.actor.name, reason, archive=archive, cascade=cascade)
        return EmptyOk()
