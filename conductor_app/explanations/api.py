"""Views that explain a run, and that plan an operation before it is applied."""

from dataclasses import asdict, replace

from django.http import HttpResponse

from ..access.tokens import open_plan, sign_plan
from ..access.visibility import visible
from ..core.errors import Invalid
from ..runs.commands.plans import Operation, apply_operation, plan_operation
from ..runs.documents.workflows import find_run, raise_run_not_found
from ..runs.models import Attempt, Run
from ..runs.queries.comparison import DOCUMENTS, compare_runs, comparison_candidates, find_run_id
from ..tasks.queries.queues import queue_position
from ..utils import clock
from ..web.api import requests as request_body
from ..web.api.operations import NO_CONTENT, ApiOperation, Json
from ..web.api.permissions import can_control_run, can_view_run, may_debug
from ..web.api.view import ConductorRequest, ConductorView
from . import serializers
from .cause import run_cause
from .serializers import (
    APPLY_REQUEST,
    PLAN_REQUEST,
    cause_document,
    comparison_document,
    parse_apply_request,
    parse_plan_request,
    plan_document,
)


class RunCause(ConductorView):
    """GET /api/insight/runs/{workflowId}/cause: explain the status of the run and what it waits for.

    `gates`: the conditions that a pending task must meet. `operations`: what the status allows.
    """

    @ApiOperation("Explain the status of a run", can_view_run, reply=serializers.CAUSE)
    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        run, now = find_run(workflow), clock.now()
        cause = run_cause(run, now)
        attempt = Attempt.objects.defer_payloads().select_related("run").filter(pk=cause.attempt_id).first()
        is_polled = all(verdict.is_open for verdict in cause.verdicts if verdict.gate == "polled")
        position = queue_position(attempt, now, is_polled=is_polled) if attempt else None
        return Json(cause_document(run, cause, position))


class RunPlan(ConductorView):
    """POST /api/insight/runs/{workflowId}/plan: preview an operation. Nothing is changed.

    `confirmationToken` of the response applies exactly this plan, for ten minutes, unless the run changes before.
    """

    @ApiOperation("Plan an operation on a run", can_control_run, reply=serializers.PLAN, body=PLAN_REQUEST)
    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        operation = parse_plan_request(request_body.read_object(request))
        _require_debug_of(request, operation)
        find_run(workflow)
        plan = plan_operation(workflow, operation)
        signed = {"operation": asdict(operation), "revision": plan.revision}
        token, expires_at = sign_plan(workflow, request.actor.name, signed)
        return Json({**plan_document(plan), "confirmationToken": token, "expiresAt": expires_at})


class RunPlanConfirmation(ConductorView):
    """POST /api/insight/runs/{workflowId}/apply: apply a plan, by the token of its response.

    The request fails with 409 if the run has changed since the plan.
    """

    @ApiOperation("Apply the plan of an operation", can_control_run, reply=NO_CONTENT, body=APPLY_REQUEST)
    def post(self, request: ConductorRequest, workflow: str) -> None:
        token, reason = parse_apply_request(request_body.read_object(request))
        plan = open_plan(token, workflow, request.actor.name)
        operation = Operation(**plan["operation"])
        _require_debug_of(request, operation)
        operation = replace(operation, reason=reason or operation.reason)
        apply_operation(workflow, operation, request.actor.name, revision=plan["revision"])


def _require_debug_of(request: ConductorRequest, operation: Operation) -> None:
    """Check the permission of the debugger, if the operation belongs to it."""
    if operation.name == "rewind":
        may_debug.check(request, {})


class RunComparisonView(ConductorView):
    """GET /api/insight/runs/{workflowId}/compare: compare the tasks and payloads of two runs.

    `with`: the id or the correlation id of the other run; otherwise the last success of the same workflow.
    """

    @ApiOperation("Compare two runs", can_view_run, reply=serializers.COMPARISON, query={"with": str})
    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        run = find_run(workflow, DOCUMENTS)
        text = request.query.text("with")
        # A run that the caller may not read is like one that does not exist.
        readable = visible(Run.objects.all())
        other_id = find_run_id(text, run) if text else next(iter(comparison_candidates(run).values()), "")
        if not other_id:
            raise Invalid(f"There is no other run of {run.name} to compare with. Name one with the parameter 'with'.")
        if not readable.filter(pk=other_id).exists():
            raise_run_not_found(other_id)
        other = find_run(other_id, DOCUMENTS)
        return Json(comparison_document(compare_runs(run, other)))
