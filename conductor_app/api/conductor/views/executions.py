"""Workflows that are started and waited for."""

from dataclasses import replace

from django.http import HttpResponse

from ....engine import runs
from ....engine.payloads import load_payload
from ....engine.run_waits import wait_for_run
from ....insight.execution import find_run
from .. import request_body
from ..query_parameters import QueryParameters, parse_integer
from ..replies import Json
from ..serializers.requests import errors_under
from ..serializers.waits import DEFAULT_SECONDS, Wish, parse_given, refs_in, request_id, signal_response, strategy
from ..serializers.workflows import start_by_name, start_request
from ..view import ConductorRequest, ConductorView


class Execution(ConductorView):
    """POST /api/workflow/execute/{name}/{version}: start a workflow, wait until it has ended or waits for somebody.

    The same requestId sent again starts nothing: it waits for the workflow that the first one has started.
    """

    def post(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        wish = parse_wait(request.query)
        asked = start_request(
            {
                **request_body.read_object(request),
                "name": name,
                "version": parse_integer(version, "The version") or None,
            }
        )
        with errors_under("executeWorkflow.startWorkflowRequest.workflowDef"):
            run_id = runs.start(replace(asked, request_id=wish.request_id or None), request.actor.name)
        return Json(signal_response(run_id, wait_for_run(run_id, wish.seconds, wish.refs), wish))


class ExecutionByName(ConductorView):
    """POST, GET /api/workflow/execute/{name}: the same as an API of one's own: input in, output out.

    What to wait for is said in headers: requestId, waitUntilTaskRef, waitForSeconds.
    """

    def post(self, request: ConductorRequest, name: str) -> HttpResponse:
        return start_and_wait(
            request, name, request_body.read_object(request) if request_body.read_bytes(request) else {}
        )

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        return start_and_wait(request, name, {})


def parse_wait(query: QueryParameters) -> Wish:
    """What the query says of the wait; 0 seconds stand for ten (api §1.2)."""
    return Wish(
        seconds=parse_seconds(parse_given(query.text("waitForSeconds"))),
        refs=tuple(ref for text in query.values.get("waitUntilTaskRef", ()) for ref in refs_in(text)),
        strategy=strategy(query.text("returnStrategy")),
        request_id=request_id(query.text("requestId")),
    )


def parse_seconds(text: str) -> int:
    """How long to wait."""
    return max(parse_integer(text.strip(), "waitForSeconds"), 0) or DEFAULT_SECONDS if text.strip() else DEFAULT_SECONDS


def start_and_wait(request: ConductorRequest, name: str, input: dict) -> HttpResponse:
    """Start a workflow with this input and wait; its output, and in headers which it is and how it stands."""
    said = request.headers
    asked = replace(
        start_by_name(name, request.query, input, said), request_id=request_id(said.get("requestId", "")) or None
    )
    run_id = runs.start(asked, request.actor.name)
    seconds = parse_seconds(parse_given(said.get("waitForSeconds", "")))
    stop = wait_for_run(run_id, seconds, refs_in(said.get("waitUntilTaskRef", "")))
    run = find_run(run_id, ["output"])
    reply = Json(load_payload(run.output_path) if run.output_path else run.output)
    reply.headers["X-Workflow-Id"], reply.headers["X-Workflow-Status"] = run.id, run.status
    reply.headers["X-Signal-Timeout"] = str(stop.timed_out).lower()
    return reply
