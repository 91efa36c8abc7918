"""Workflow definitions that the benchmarks run."""

from typing import Any

SDK_DEFINITION = "bench_sdk"
"""The chain of the workers of the Python SDK."""


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


def fan_out(name: str = "bench_fan_out") -> dict[str, Any]:
    """Return a workflow with a dynamic fork, whose branches are in the input."""
    fork = {
        "name": "fan",
        "taskReferenceName": "fan",
        "type": "FORK_JOIN_DYNAMIC",
        "inputParameters": {"tasks": "${workflow.input.tasks}", "inputs": "${workflow.input.inputs}"},
        "dynamicForkTasksParam": "tasks",
        "dynamicForkTasksInputParamName": "inputs",
    }
    return workflow(name, fork, {"name": "gather", "taskReferenceName": "gather", "type": "JOIN"})


def branches(count: int, task: str = "bench_branch") -> dict[str, Any]:
    """Return the input of `fan_out` for a number of branches."""
    return {
        "tasks": [{"name": task, "taskReferenceName": f"branch_{number}", "type": "SIMPLE"} for number in range(count)],
        "inputs": {f"branch_{number}": {"number": number} for number in range(count)},
    }


def choices(count: int) -> dict[str, Any]:
    """Return a workflow whose loop evaluates a script, chooses a case by its result, and has a task in each case."""
    script = {
        "name": "parity",
        "taskReferenceName": "parity",
        "type": "INLINE",
        "inputParameters": {
            "evaluatorType": "javascript",
            "expression": "(function () { return $.turn % 2 === 0 ? 'even' : 'odd'; })();",
            "turn": "${again.output.iteration}",
        },
    }
    choice = {
        "name": "choice",
        "taskReferenceName": "choice",
        "type": "SWITCH",
        "evaluatorType": "value-param",
        "expression": "case",
        "inputParameters": {"case": "${parity.output.result}"},
        "decisionCases": {"even": [simple("even", "bench_case")], "odd": [simple("odd", "bench_case")]},
        "defaultCase": [],
    }
    return workflow(
        f"bench_choices_{count}",
        {
            "name": "again",
            "taskReferenceName": "again",
            "type": "DO_WHILE",
            "loopOver": [script, choice],
            "inputParameters": {"most": count},
            "loopCondition": "if ($.again['iteration'] < $.most) { true; } else { false; }",
        },
    )


def sub_workflow(ref: str, child: str) -> dict[str, Any]:
    """Return a SUB_WORKFLOW task."""
    return {
        "name": ref,
        "taskReferenceName": ref,
        "type": "SUB_WORKFLOW",
        "inputParameters": {"order": "${workflow.input.order}"},
        "subWorkflowParam": {"name": child, "version": 1},
    }


def nested_twice() -> list[dict[str, Any]]:
    """Return the definitions of a grandchild with one task, of its parent and of its grandparent."""
    return [
        workflow("bench_grandchild", simple("bench_innermost")),
        workflow("bench_middle", sub_workflow("grandchild", "bench_grandchild")),
        workflow("bench_outer", sub_workflow("middle", "bench_middle")),
    ]
