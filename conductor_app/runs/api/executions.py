"""Views that start a workflow and wait for its result."""

from dataclasses import replace

from django.http import HttpResponse

from ....core.document.checks.values import read_mapping
from ....engine.payloads.payload_storage import load_payload
from ....engine.runs import run_commands
from ....engine.runs.run_waits import WaitOutcome, begin_run_wait
from ....insight.runs.execution import find_run
from ...waiting_replies import reply_after, waiting_client
from .. import request_body
from ..api_operation import VERSION_QUERY, WAIT_QUERY, ApiOperation
from ..openapi import tables as shapes
from ..permissions import can_start_named_workflow, can_start_workflow
from ..query_parameters import QueryParameters, parse_integer
from ..replies import Json
from ..request_fields import errors_under
from ..view import ConductorRequest, ConductorView
from .wait_serializers import (
    DEFAULT_SECONDS,
    WaitRequest,
    none_to_empty,
    parse_refs,
    parse_request_id,
    parse_return_strategy,
    signal_response,
)
from .workflow_serializers import START_REQUEST, parse_start_by_name, parse_start_request


class Execution(ConductorView):
    """POST /api/workflow/execute/{name}/{version}: start a workflow and wait until it ends or waits for a client.

    A repeated request with the same requestId starts no workflow; it waits for the one that the first request started.
    """

    operations = {
        "post": ApiOperation(
            "Start a workflow and wait for its end",
            permission=can_start_workflow,
            reply=shapes.SIGNAL_RESPONSE,
            body=START_REQUEST,
            query=WAIT_QUERY,
        ),
    }

    def post(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        wait_request = parse_wait(request.query)
        start_request = parse_start_request(
            {
                **request_body.read_object(request),
                "name": name,
                "version": parse_integer(version, "The version") or None,
            }
        )
        with errors_under("executeWorkflow.startWorkflowRequest.workflowDef"):
            run_id = run_commands.start(
                replace(start_request, request_id=wait_request.request_id or None), request.actor.name
            )
        wait = begin_run_wait(run_id, wait_request.seconds, wait_request.refs, waiting_client(request))
        return reply_after(request, wait, lambda stop: Json(signal_response(run_id, stop, wait_request)))


class ExecutionByName(ConductorView):
    """POST, GET /api/workflow/execute/{name}: execute a workflow like a function.

    The body is its input, the response its output. Headers specify the wait: requestId, waitUntilTaskRef,
    waitForSeconds.
    """

    operations = {
        "post": ApiOperation(
            "Start a workflow, wait for its end and get its output",
            permission=can_start_named_workflow,
            reply=read_mapping,
            body=read_mapping,
            query={"version": int, "correlationId": str},
        ),
        "get": ApiOperation(
            "Start a workflow without input, wait for its end and get its output",
            permission=can_start_named_workflow,
            reply=read_mapping,
            query=VERSION_QUERY,
            changes_state=True,
        ),
    }

    def post(self, request: ConductorRequest, name: str) -> HttpResponse:
        return start_and_wait(
            request, name, request_body.read_object(request) if request_body.read_bytes(request) else {}
        )

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        return start_and_wait(request, name, {})


def parse_wait(query: QueryParameters) -> WaitRequest:
    """Return the wait that the query specifies; 0 seconds mean ten (api §1.2)."""
    return WaitRequest(
        seconds=parse_seconds(none_to_empty(query.text("waitForSeconds"))),
        refs=tuple(ref for text in query.values.get("waitUntilTaskRef", ()) for ref in parse_refs(text)),
        strategy=parse_return_strategy(query.text("returnStrategy")),
        request_id=parse_request_id(query.text("requestId")),
    )


def parse_seconds(text: str) -> int:
    """Return the seconds to wait."""
    return max(parse_integer(text.strip(), "waitForSeconds"), 0) or DEFAULT_SECONDS if text.strip() else DEFAULT_SECONDS


def start_and_wait(request: ConductorRequest, name: str, input: dict) -> HttpResponse:
    """Start a workflow with this input and wait. The response has its output; headers have its id and status."""
    headers = request.headers
    start_request = replace(
        parse_start_by_name(name, request.query, input, headers),
        request_id=parse_request_id(headers.get("requestId", "")) or None,
    )
    run_id = run_commands.start(start_request, request.actor.name)
    seconds = parse_seconds(none_to_empty(headers.get("waitForSeconds", "")))
    refs = parse_refs(headers.get("waitUntilTaskRef", ""))
    wait = begin_run_wait(run_id, seconds, refs, waiting_client(request))
    return reply_after(request, wait, lambda stop: output_reply(run_id, stop))


def output_reply(run_id: str, stop: WaitOutcome) -> HttpResponse:
    """Return the output of a run. Headers have its id and status."""
    run = find_run(run_id, ["output"])
    reply = Json(load_payload(run.output_path) if run.output_path else run.output)
    reply.headers["X-Workflow-Id"], reply.headers["X-Workflow-Status"] = run.id, run.status
    reply.headers["X-Signal-Timeout"] = str(stop.timed_out).lower()
    return reply
