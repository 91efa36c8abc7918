"""Parameters of waiting requests, and the SignalResponse: a workflow or a task, as the client chooses (api §3.16)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from ....core.errors import Invalid
from ....engine.runs.run_waits import WaitOutcome
from ....insight.runs.execution import find_attempt, wire_run, wire_task
from ....models.snapshots import read_snapshot

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
    """Return the id that a client gave its request.

    Raises:
        Invalid: when it is too long.
    """
    trimmed = none_to_empty(text.strip()).replace("\0", "")
    if len(trimmed) > MAX_REQUEST_ID_LENGTH:
        raise Invalid(f"requestId must have at most {MAX_REQUEST_ID_LENGTH} characters.")
    return trimmed


def parse_return_strategy(text: str) -> str:
    """Return the strategy that selects the response.

    Raises:
        Invalid: when it is unknown.
    """
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
