"""Parsing of a RerunWorkflowRequest (api §3.8)."""

from typing import Any

from ....core.document.checks.document_fields import FieldSpec, FieldTable
from ....core.document.checks.values import read_mapping, read_text
from ....core.errors import Invalid
from ..request_fields import read_request

RERUN_REQUEST: FieldTable = (
    FieldSpec("reRunFromWorkflowId", read_text),
    FieldSpec("workflowInput", read_mapping),
    FieldSpec("reRunFromTaskId", read_text, ""),
    FieldSpec("taskInput", read_mapping),
    FieldSpec("correlationId", read_text),
)
"""The workflow's id is ignored: the address names it."""


def parse_rerun_request(document: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a rerun.

    Raises:
        ValidationFailed: when fields are invalid
        Invalid: when the id of the task is invalid.
    """
    fields = read_request(document, RERUN_REQUEST, "rerunWorkflow.request", lambda _read, _place: None)
    if document.get("reRunFromTaskId") and not fields["reRunFromTaskId"]:
        # Only NUL characters: neither a task nor the whole workflow was meant.
        raise Invalid("Invalid reRunFromTaskId.")
    return {
        "attempt_id": fields["reRunFromTaskId"],
        "task_input": fields.get("taskInput"),
        "input": fields.get("workflowInput"),
        "correlation_id": fields.get("correlationId"),
    }
