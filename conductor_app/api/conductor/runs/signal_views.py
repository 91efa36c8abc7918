"""Views of signals, which complete the WAIT task of a workflow."""

from django.http import HttpResponse

from ....core.document.checks.values import read_mapping
from ....core.errors import NotFound
from ....core.reports import Report
from ....engine.runs.run_waits import begin_run_wait, signal_run
from ...waiting_replies import reply_after, waiting_client
from .. import request_body
from ..api_operation import EMPTY_REPLY, ApiOperation
from ..openapi import tables as shapes
from ..permissions import can_signal
from ..replies import EmptyOk, Json
from ..tasks.task_serializers import parse_outcome
from ..view import ConductorRequest, ConductorView
from .wait_serializers import WaitRequest, parse_return_strategy, signal_response

DEFAULT_WAIT_MS = 5000


class Signal(ConductorView):
    """POST /api/tasks/{workflowId}/{status}/signal: end the WAIT at which a workflow, or a child of it, stands."""

    operations = {
        "post": ApiOperation(
            "Signal the task at which a workflow waits", permission=can_signal, reply=EMPTY_REPLY, body=read_mapping
        ),
    }

    def post(self, request: ConductorRequest, workflow_id: str, status: str) -> HttpResponse:
        send_signal(request, workflow_id, status)
        return EmptyOk()


class SignalAndWait(ConductorView):
    """POST /api/tasks/{workflowId}/{status}/signal/sync: send a signal and wait for the workflow's next stop."""

    operations = {
        "post": ApiOperation(
            "Signal the waiting task of a workflow, and wait for its next stop",
            permission=can_signal,
            reply=shapes.SIGNAL_RESPONSE,
            body=read_mapping,
            query={"returnStrategy": str, "timeoutMillis": int},
        ),
    }

    def post(self, request: ConductorRequest, workflow_id: str, status: str) -> HttpResponse:
        query = request.query
        seconds = max(query.integer("timeoutMillis", DEFAULT_WAIT_MS, bits=64), 0) / 1000
        wait_request = WaitRequest(
            seconds=seconds, refs=(), strategy=parse_return_strategy(query.text("returnStrategy"))
        )
        if send_signal(request, workflow_id, status) is None:
            raise NotFound(f"No task of workflow {workflow_id} is waiting for a signal.")
        wait = begin_run_wait(workflow_id, wait_request.seconds, client=waiting_client(request))
        return reply_after(request, wait, lambda stop: Json(signal_response(workflow_id, stop, wait_request)))


def send_signal(request: ConductorRequest, workflow_id: str, status: str) -> str | None:
    """Merge the body into the output of the first open WAIT task and report its status. Returns the id of the task."""
    output = request_body.read_object(request) if request_body.read_bytes(request) else {}
    return signal_run(
        workflow_id, Report(outcome=parse_outcome(status), output=output, merges=True), request.actor.name
    )
