"""Views that start a workflow and wait for its result, and views of signals (api §3.16)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from django.http import HttpResponse

from ...access.permissions import EXECUTE, WORKFLOW_DEF
from ...core.decide import Report
from ...core.document.fields import read_mapping
from ...core.errors import Invalid, NotFound
from ...db.statements import read_snapshot
from ...payloads.commands import load_payload
from ...tasks.api.serializers import parse_outcome
from ...tasks.commands.waits import WaitOutcome, begin_run_wait, signal_run
from ...web.api import permissions as targets
from ...web.api import requests as request_body
from ...web.api.operations import VERSION_QUERY, WAIT_QUERY, ApiOperation, Json
from ...web.api.permissions import (
    RUN_CONTROL_RIGHTS,
    RequiresAccess,
    RequiresAll,
    can_start_workflow,
    can_view_run_of_task,
    requires,
)
from ...web.api.requests import QueryParameters, errors_under, parse_integer
from ...web.api.view import ConductorRequest, ConductorView
from ...web.client_views import reply_after, waiting_client
from ..commands.start import start_run
from ..documents.tasks import wire_task
from ..documents.workflows import find_attempt, find_run, wire_run
from . import serializers
from .serializers import START_REQUEST, parse_start_by_name, parse_start_request

can_start_named_workflow = requires(EXECUTE, WORKFLOW_DEF, targets.named_in_address(WORKFLOW_DEF, "name"))
can_signal = RequiresAccess(RUN_CONTROL_RIGHTS, targets.run_in_address("workflow_id"))
can_signal_and_view = RequiresAll((can_signal, can_view_run_of_task))


RETURN_STRATEGIES = ("TARGET_WORKFLOW", "BLOCKING_WORKFLOW", "BLOCKING_TASK", "BLOCKING_TASK_INPUT")
MAX_REQUEST_ID_LENGTH = 255
DEFAULT_SECONDS = 10
TASK_FIELDS = ("taskType", "taskId", "referenceTaskName", "retryCount", "taskDefName", "status")
OPTIONAL_TASK_FIELDS = ("correlationId", "retriedTaskId", "workflowType", "reasonForIncompletion")
RUN_FIELDS = ("input", "output", "priority", "variables", "tasks", "createTime", "updateTime", "status")
OPTIONAL_RUN_FIELDS = ("correlationId", "createdBy", "reasonForIncompletion")


@dataclass(frozen=True, slots=True)
class WaitRequest:
    """The condition that a client waits for. `request_id` is empty if the client sent none."""

    seconds: float
    refs: tuple[str, ...]
    strategy: str = RETURN_STRATEGIES[0]
    request_id: str = ""


def none_to_empty(text: str) -> str:
    """Return a parameter's text. One client sends `None` for an absent value (api §8.3)."""
    return "" if text == "None" else text


def parse_refs(text: str) -> tuple[str, ...]:
    """Return comma-separated reference names."""
    return tuple(ref.strip() for ref in none_to_empty(text).split(",") if ref.strip())


def parse_request_id(text: str) -> str:
    """Return the id that a client gave its request."""
    trimmed = none_to_empty(text.strip()).replace("\0", "")
    if len(trimmed) > MAX_REQUEST_ID_LENGTH:
        raise Invalid(f"requestId must have at most {MAX_REQUEST_ID_LENGTH} characters.")
    return trimmed


def parse_return_strategy(text: str) -> str:
    """Return the strategy that selects the response."""
    chosen = none_to_empty(text) or RETURN_STRATEGIES[0]
    if chosen not in RETURN_STRATEGIES:
        raise Invalid(f"returnStrategy must be one of {', '.join(RETURN_STRATEGIES)}; it is '{chosen[:100]}'.")
    return chosen


@read_snapshot()
def signal_response(target_id: str, stop: WaitOutcome, wait_request: WaitRequest) -> dict[str, Any]:
    """Return the response of the chosen strategy; the target workflow if no task blocks it."""
    chosen = (
        wait_request.strategy
        if stop.attempt_id or wait_request.strategy == "BLOCKING_WORKFLOW"
        else RETURN_STRATEGIES[0]
    )
    target = wire_run(target_id)
    common = {
        "responseType": chosen,
        "targetWorkflowId": target_id,
        "targetWorkflowStatus": target["status"],
        "requestId": wait_request.request_id or str(uuid4()),
        "signalTimeout": stop.timed_out,
    }
    return common | DOCUMENT_BY_STRATEGY[chosen](target, stop)


def _workflow_document(target: dict[str, Any], stop: WaitOutcome) -> dict[str, Any]:
    document = {"workflowId": target["workflowId"]} | {name: target[name] for name in RUN_FIELDS}
    return document | {name: target[name] for name in OPTIONAL_RUN_FIELDS if name in target}


def _blocking_workflow_document(target: dict[str, Any], stop: WaitOutcome) -> dict[str, Any]:
    return _workflow_document(target if stop.run_id == target["workflowId"] else wire_run(stop.run_id), stop)


def _blocking_task_document(target: dict[str, Any], stop: WaitOutcome) -> dict[str, Any]:
    task = wire_task(find_attempt(stop.attempt_id))
    document = {name: task[name] for name in TASK_FIELDS}
    document |= {
        "workflowId": task["workflowInstanceId"],
        "input": task["inputData"],
        "output": task["outputData"],
        "priority": task["workflowPriority"],
        "createTime": task["startTime"],
        "updateTime": task["updateTime"],
    }
    document |= {"createdBy": task["workerId"]} if "workerId" in task else {}
    return document | {name: task[name] for name in OPTIONAL_TASK_FIELDS if name in task}


DOCUMENT_BY_STRATEGY: dict[str, Callable[[dict[str, Any], WaitOutcome], dict[str, Any]]] = {
    "TARGET_WORKFLOW": _workflow_document,
    "BLOCKING_WORKFLOW": _blocking_workflow_document,
    "BLOCKING_TASK": _blocking_task_document,
    "BLOCKING_TASK_INPUT": _blocking_task_document,
}


class Execution(ConductorView):
    """POST /api/workflow/execute/{name}/{version}: start a workflow and wait until it ends or waits for a client.

    A repeated request with the same requestId starts no workflow; it waits for the one that the first request started.
    """

    @ApiOperation(
        "Start a workflow and wait for its end",
        can_start_workflow,
        reply=serializers.SIGNAL_RESPONSE,
        body=START_REQUEST,
        query=WAIT_QUERY,
    )
    def post(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        wait_request = parse_wait(request.query)
        start_request = parse_start_request(
            {
                **request_body.read_object(request),
                "name": name,
                "version": parse_integer(version, "The version") or None,
            },
            request.headers,
        )
        with errors_under("executeWorkflow.startWorkflowRequest.workflowDef"):
            run_id = start_run(replace(start_request, request_id=wait_request.request_id or None), request.actor.name)
        wait = begin_run_wait(run_id, wait_request.seconds, wait_request.refs, waiting_client(request))
        return reply_after(request, wait, lambda stop: Json(signal_response(run_id, stop, wait_request)))


class ExecutionByName(ConductorView):
    """POST, GET /api/workflow/execute/{name}: execute a workflow like a function.

    The body is its input, the response its output. Headers specify the wait: requestId, waitUntilTaskRef,
    waitForSeconds.
    """

    @ApiOperation(
        "Start a workflow, wait for its end and get its output",
        can_start_named_workflow,
        reply=read_mapping,
        body=read_mapping,
        query={"version": int, "correlationId": str},
    )
    def post(self, request: ConductorRequest, name: str) -> HttpResponse:
        return start_and_wait(
            request, name, request_body.read_object(request) if request_body.read_bytes(request) else {}
        )

    @ApiOperation(
        "Start a workflow without input, wait for its end and get its output",
        can_start_named_workflow,
        reply=read_mapping,
        query=VERSION_QUERY,
        changes_state=True,
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
    return max(parse_integer(text.strip(), "waitForSeconds"), 0) or DEFAULT_SECONDS if text.strip() else DEFAULT_SECONDS


def start_and_wait(request: ConductorRequest, name: str, input: dict) -> HttpResponse:
    """Start a workflow with this input and wait. The response has its output; headers have its id and status."""
    headers = request.headers
    start_request = replace(
        parse_start_by_name(name, request.query, input, headers),
        request_id=parse_request_id(headers.get("requestId", "")) or None,
    )
    run_id = start_run(start_request, request.actor.name)
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


DEFAULT_WAIT_MS = 5000


class Signal(ConductorView):
    """POST /api/tasks/{workflowId}/{status}/signal: end the WAIT at which a workflow, or a child of it, stands."""

    @ApiOperation("Signal the task at which a workflow waits", can_signal, body=read_mapping)
    def post(self, request: ConductorRequest, workflow_id: str, status: str) -> None:
        send_signal(request, workflow_id, status)


class SignalAndWait(ConductorView):
    """POST /api/tasks/{workflowId}/{status}/signal/sync: send a signal and wait for the workflow's next stop."""

    @ApiOperation(
        "Signal the waiting task of a workflow, and wait for its next stop",
        can_signal_and_view,
        reply=serializers.SIGNAL_RESPONSE,
        body=read_mapping,
        query={"returnStrategy": str, "timeoutMillis": int},
    )
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
