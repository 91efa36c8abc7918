"""Workflow definitions that the benchmarks run."""

from typing import Any


def simple(ref: str, name: str = "", **inputs: Any) -> dict[str, Any]:
    """Return a SIMPLE task."""
    return {
        "name": name or ref,
        "taskReferenceName": ref,
        "type": "SIMPLE",
        "inputParameters": inputs or {"order": "${workflow.input.order}"},
    }


def workflow(name: str, *tasks: dict[str, Any]) -> dict[str, Any]:
    """Return a workflow definition."""
    return {
        "name": name,
        "version": 1,
        "schemaVersion": 2,
        "ownerEmail": "bench@example.com",
        "tasks": list(tasks),
        "timeoutSeconds": 0,
        "timeoutPolicy": "ALERT_ONLY",
    }


def task_definition(name: str) -> dict[str, Any]:
    """Return a task definition."""
    return {
        "name": name,
        "retryCount": 1,
        "timeoutSeconds": 600,
        "responseTimeoutSeconds": 60,
        "ownerEmail": "bench@example.com",
    }


def chain(count: int) -> dict[str, Any]:
    """Return a workflow of consecutive tasks."""
    return workflow(f"bench_chain_{count}", *(simple(f"bench_step_{number}") for number in range(count)))


def fan_out() -> dict[str, Any]:
    """Return a workflow with a dynamic fork, whose branches are in the input."""
    fork = {
        "name": "fan",
        "taskReferenceName": "fan",
        "type": "FORK_JOIN_DYNAMIC",
        "inputParameters": {"tasks": "${workflow.input.tasks}", "inputs": "${workflow.input.inputs}"},
        "dynamicForkTasksParam": "tasks",
        "dynamicForkTasksInputParamName": "inputs",
    }
    return workflow("bench_fan_out", fork, {"name": "gather", "taskReferenceName": "gather", "type": "JOIN"})


def branches(count: int) -> dict[str, Any]:
    """Return the input of `fan_out` for a number of branches."""
    return {
        "tasks": [
            {"name": "bench_branch", "taskReferenceName": f"branch_{number}", "type": "SIMPLE"}
            for number in range(count)
        ],
        "inputs": {f"branch_{number}": {"number": number} for number in range(count)},
    }


def loop(count: int) -> dict[str, Any]:
    """Return a workflow that loops over one task."""
    body = simple("bench_turn", turn="${again.output.iteration}")
    return workflow(
        f"bench_loop_{count}",
        {
            "name": "again",
            "taskReferenceName": "again",
            "type": "DO_WHILE",
            "loopOver": [body],
            "inputParameters": {"most": count},
            "loopCondition": "$.again['iteration'] < $.most",
        },
    )


def nested() -> list[dict[str, Any]]:
    """Return the definitions of a child and of its parent."""
    child = workflow("bench_child", simple("bench_inner"))
    step = {
        "name": "child",
        "taskReferenceName": "child",
        "type": "SUB_WORKFLOW",
        "inputParameters": {"order": "${workflow.input.order}"},
        "subWorkflowParam": {"name": "bench_child", "version": 1},
    }
    return [child, workflow("bench_parent", step)]
