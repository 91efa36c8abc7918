"""What a request may wait for, and SignalResponse out: a workflow or a task, as the client wishes (api §3.16)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from ....core.errors import Invalid
from ....engine.run_waits import WaitOutcome
from ....insight.execution import find_attempt, wire_run, wire_task
from ....models.snapshots import read_snapshot

STRATEGIES = ("TARGET_WORKFLOW", "BLOCKING_WORKFLOW", "BLOCKING_TASK", "BLOCKING_TASK_INPUT")
LONGEST_ID = 255
DEFAULT_SECONDS = 10
TASK_FIELDS = ("taskType", "taskId", "referenceTaskName", "retryCount", "taskDefName", "status")
OPTIONAL_TASK_FIELDS = ("correlationId", "retriedTaskId", "workflowType", "reasonForIncompletion")
RUN_FIELDS = ("input", "output", "priority", "variables", "tasks", "createTime", "updateTime", "status")
OPTIONAL_RUN_FIELDS = ("correlationId", "createdBy", "reasonForIncompletion")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a client waits for. `request_id` is empty where it named none."""

    seconds: float
    refs: tuple[str, ...]
    strategy: str = STRATEGIES[0]
    request_id: str = ""


def parse_given(text: str) -> str:
    """A parameter's text; one client spells what it has no value for `None` (api §8.3)."""
    return "" if text == "None" else text


def refs_in(text: str) -> tuple[str, ...]:
    """Reference names with commas between them."""
    return tuple(ref.strip() for ref in parse_given(text).split(",") if ref.strip())


def request_id(text: str) -> str:
    """The name that a client gave its request; raises Invalid."""
    named = parse_given(text.strip()).replace("\0", "")
    if len(named) > LONGEST_ID:
        raise Invalid(f"A requestId has at most {LONGEST_ID} characters.")
    return named


def strategy(text: str) -> str:
    """What the reply is about; raises Invalid."""
    chosen = parse_given(text) or STRATEGIES[0]
    if chosen not in STRATEGIES:
        raise Invalid(f"returnStrategy must be one of {', '.join(STRATEGIES)}; it is '{chosen[:100]}'.")
    return chosen


@read_snapshot()
def signal_response(target_id: str, stop: WaitOutcome, wish: Wish) -> dict[str, Any]:
    """The reply of the chosen strategy; the target workflow where no task blocks it, for there is none to show."""
    chosen = wish.strategy if stop.attempt_id or wish.strategy == "BLOCKING_WORKFLOW" else STRATEGIES[0]
    target = wire_run(target_id)
    common = {
        "responseType": chosen,
        "targetWorkflowId": target_id,
        "targetWorkflowStatus": target["status"],
        "requestId": wish.request_id or str(uuid4()),
        "signalTimeout": stop.timed_out,
    }
    return common | SHOWN[chosen](target, stop)


def _target(target: dict[str, Any], stop: WaitOutcome) -> dict[str, Any]:
    shown = {"workflowId": target["workflowId"]} | {name: target[name] for name in RUN_FIELDS}
    return shown | {name: target[name] for name in OPTIONAL_RUN_FIELDS if name in target}


def _blocking_workflow(target: dict[str, Any], stop: WaitOutcome) -> dict[str, Any]:
    return _target(target if stop.run_id == target["workflowId"] else wire_run(stop.run_id), stop)


def _blocking_task(target: dict[str, Any], stop: WaitOutcome) -> dict[str, Any]:
    task = wire_task(find_attempt(stop.attempt_id))
    shown = {name: task[name] for name in TASK_FIELDS}
    shown |= {
        "workflowId": task["workflowInstanceId"],
        "input": task["inputData"],
        "output": task["outputData"],
        "priority": task["workflowPriority"],
        "createTime": task["startTime"],
        "updateTime": task["updateTime"],
    }
    shown |= {"createdBy": task["workerId"]} if "workerId" in task else {}
    return shown | {name: task[name] for name in OPTIONAL_TASK_FIELDS if name in task}


SHOWN: dict[str, Callable[[dict[str, Any], WaitOutcome], dict[str, Any]]] = {
    "TARGET_WORKFLOW": _target,
    "BLOCKING_WORKFLOW": _blocking_workflow,
    "BLOCKING_TASK": _blocking_task,
    "BLOCKING_TASK_INPUT": _blocking_task,
}
