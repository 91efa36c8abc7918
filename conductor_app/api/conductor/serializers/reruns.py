"""RerunWorkflowRequest in (api §3.8)."""

from typing import Any

from ....core.errors import Invalid
from ....core.language.checks.fields import Field, Table
from ....core.language.checks.values import mapping, text
from .requests import read_request

RERUN_REQUEST: Table = (
    Field("reRunFromWorkflowId", text),
    Field("workflowInput", mapping),
    Field("reRunFromTaskId", text, ""),
    Field("taskInput", mapping),
    Field("correlationId", text),
)
"""The workflow's id is ignored: the address names it."""


def rerun_request(document: dict[str, Any]) -> dict[str, Any]:
    """What the engine is asked for; raises ValidationFailed, and Invalid where the id of the task can be none."""
    read = read_request(document, RERUN_REQUEST, "rerunWorkflow.request", lambda _read, _place: None)
    if document.get("reRunFromTaskId") and not read["reRunFromTaskId"]:
        # Without its NULs nothing is left of it: no task was meant, but not the whole workflow either.
        raise Invalid("reRunFromTaskId names no task.")
    return {
        "attempt_id": read["reRunFromTaskId"],
        "task_input": read.get("taskInput"),
        "input": read.get("workflowInput"),
        "correlation_id": read.get("correlationId"),
    }
