"""Views that change the course of a running workflow, or its state."""

from django.http import HttpResponse

from ....core.document.checks.values import read_mapping
from ....engine.runs import removals, skip_and_jump
from ....engine.runs.run_waits import WaitOutcome, begin_run_wait
from ....insight.runs.execution import wire_run
from ...waiting_replies import reply_after, waiting_client
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
    """PUT /api/workflow/{workflowId}/skiptask/{taskRef}: skip a step that has not started.

    Its task becomes SKIPPED, with the input and output of the request. A fork is skipped with its branches and its
    join. `ref__2` means the second iteration of the loop around it; without an iteration, the current one.
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
    """POST /api/workflow/{workflowId}/jump/{taskRef}: continue at a later step, with the inputs of the request.

    The steps before it become SKIPPED; parallel branches continue.
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
    """POST /api/workflow/{workflowId}/variables: set variables and keep the others. The reply is the workflow."""

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
    """POST /api/workflow/{workflowId}/state: set variables and report on a task in one transaction.

    Returns the workflow. If the query has a duration or task references, the response waits as that of an execution
    does.
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
    """POST /api/workflow/{workflowId}/resetcallbacks: make delayed tasks available to workers at once."""

    operations = {
        "post": ApiOperation(
            "Make the delayed tasks of a workflow available now", permission=can_control_run, reply=NO_CONTENT
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        skip_and_jump.reset_callbacks(workflow, request.actor.name)
        return NoContent()


class TerminateRemove(ConductorView):
    """DELETE /api/workflow/{workflowId}/terminate-remove: terminate the workflow and delete it.

    `cascade`: delete its sub-workflows too, recursively.
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
