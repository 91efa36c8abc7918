"""The definitions of the workload. No run may fail: tasks are retried until they succeed."""

from typing import Any

from .http_client import FaultClient

LEASE_SECONDS = 4
WAIT_SECONDS = 2
TICK_SECONDS = 2
TASK_TYPES = ("faults_pick", "faults_pack", "faults_ship")
ORDER, CHILD, ECHO, TICK = "faults_order", "faults_child", "faults_echo", "faults_tick"
SCHEDULE = "faults_schedule"


def _task_definition(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "retryCount": 1000,
        "retryLogic": "FIXED",
        "retryDelaySeconds": 1,
        "responseTimeoutSeconds": LEASE_SECONDS,
        "timeoutSeconds": 0,
        "timeoutPolicy": "RETRY",
    }


def _simple(name: str, ref: str) -> dict[str, Any]:
    return {
        "name": name,
        "taskReferenceName": ref,
        "type": "SIMPLE",
        "inputParameters": {"key": "${workflow.input.key}"},
    }


def _wait(ref: str) -> dict[str, Any]:
    duration = f"{WAIT_SECONDS} seconds"
    return {"name": "wait", "taskReferenceName": ref, "type": "WAIT", "inputParameters": {"duration": duration}}


def order_workflow(listener_url: str) -> dict[str, Any]:
    """Return a workflow with workers, a timer, a fork, a sub-workflow, a built-in worker, an event and a listener."""
    call = {"uri": listener_url, "method": "POST", "body": {"status": "CALLED", "workflowId": "${workflow.workflowId}"}}
    fork = {
        "name": "fork",
        "taskReferenceName": "fork",
        "type": "FORK_JOIN",
        "forkTasks": [[_simple("faults_pack", "pack")], [_wait("wait")]],
    }
    return {
        "name": ORDER,
        "version": 1,
        "workflowStatusListenerEnabled": True,
        "tasks": [
            _simple("faults_pick", "pick"),
            fork,
            {"name": "join", "taskReferenceName": "join", "type": "JOIN", "joinOn": ["pack", "wait"]},
            {
                "name": CHILD,
                "taskReferenceName": "child",
                "type": "SUB_WORKFLOW",
                "subWorkflowParam": {"name": CHILD, "version": 1},
                "inputParameters": {"key": "${workflow.input.key}"},
            },
            {
                "name": "faults_call",
                "taskReferenceName": "call",
                "type": "HTTP",
                "inputParameters": {"http_request": call},
            },
            {
                "name": "event",
                "taskReferenceName": "event",
                "type": "EVENT",
                "sink": "conductor",
                "inputParameters": {"key": "${workflow.input.key}"},
            },
        ],
        "outputParameters": {"token": "${pick.output.token}"},
    }


CHILD_WORKFLOW = {
    "name": CHILD,
    "version": 1,
    "tasks": [_simple("faults_ship", "ship"), _wait("rest")],
}
ECHO_WORKFLOW = {
    "name": ECHO,
    "version": 1,
    "tasks": [{"name": "done", "taskReferenceName": "done", "type": "SET_VARIABLE", "inputParameters": {"done": True}}],
}
TICK_WORKFLOW = {**ECHO_WORKFLOW, "name": TICK}
EVENT_HANDLER = {
    "name": "faults_handler",
    "event": f"conductor:{ORDER}:event",
    "active": True,
    "actions": [
        {
            "action": "start_workflow",
            "start_workflow": {"name": ECHO, "version": 1, "correlationId": "${key}", "input": {"key": "${key}"}},
        }
    ],
}
SCHEDULE_DOCUMENT = {
    "name": SCHEDULE,
    "cronExpression": f"*/{TICK_SECONDS} * * * * *",
    "zoneId": "UTC",
    "startWorkflowRequest": {"name": TICK, "version": 1, "input": {}},
}


def register_definitions(client: FaultClient, listener_url: str) -> None:
    """Register everything that the workload needs."""
    workflows = [order_workflow(listener_url), CHILD_WORKFLOW, ECHO_WORKFLOW, TICK_WORKFLOW]
    requests = [
        ("POST", "/metadata/taskdefs", [_task_definition(name) for name in (*TASK_TYPES, "faults_call")]),
        ("PUT", "/metadata/workflow", workflows),
        ("POST", "/event", EVENT_HANDLER),
        ("POST", "/scheduler/schedules", SCHEDULE_DOCUMENT),
    ]
    for method, path, document in requests:
        reply = client.send(method, path, document)
        assert reply.is_ok, (path, reply)
