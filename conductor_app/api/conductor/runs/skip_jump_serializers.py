"""SkipTaskRequest, WorkflowStateUpdate and the ids of bulk requests, as clients send them (api §1.3, §2.1, §3.8)."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from django.http import HttpRequest

from ....core.document.checks.document_fields import FieldSpec, FieldTable, ObjectOf
from ....core.document.checks.values import DocumentPosition, IntegerOf, read_mapping, read_name, read_text, texts
from ....core.errors import Invalid, ValidationFailed
from ....core.reports import Report
from ....json_values import is_deeper
from .. import request_body
from ..query_parameters import QueryParameters
from ..request_fields import read_request
from ..tasks.task_serializers import TASK_RESULT, build_report
from .lenient_query_documents import parse_query_document

SKIP_REQUEST: FieldTable = (FieldSpec("taskInput", read_mapping, dict), FieldSpec("taskOutput", read_mapping, dict))
STATE_UPDATE: FieldTable = (
    FieldSpec("taskReferenceName", read_text, ""),
    FieldSpec("taskResult", ObjectOf(TASK_RESULT)),
    FieldSpec("variables", read_mapping, dict),
)
CORRELATION: FieldTable = (FieldSpec("correlationIds", texts, list), FieldSpec("workflowNames", texts, list))
UPGRADE: FieldTable = (
    FieldSpec("name", read_name, ""),
    FieldSpec("version", IntegerOf()),
    FieldSpec("taskOutput", read_mapping, dict),
    FieldSpec("workflowInput", read_mapping, dict),
)
NAMED_VALUE_PATTERN = re.compile(r"(taskInput|taskOutput)\[([^\[\]]+)\]")
UNFILLED_REFERENCE = "{taskReferenceName}"
"""The placeholder that two clients send instead of a reference, which they put into the query (api §2.1)."""


def parse_skip_request(request: HttpRequest, query: QueryParameters) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return input and output of a task to skip, from a JSON body, a form, or the query.

    Raises:
        Invalid: when the request is nested too deeply.
    """
    request_document = _parse_body(request)
    if not request_document and query.text("skipTaskRequest"):
        request_document = parse_query_document(query.text("skipTaskRequest"))
    if not request_document:
        request_document = _parse_pairs((name, value) for name, values in query.values.items() for value in values)
    if is_deeper(request_document, request_body.MAX_DEPTH):
        raise Invalid(f"The request is nested more than {request_body.MAX_DEPTH} levels deep.")
    fields = read_request(request_document, SKIP_REQUEST, "skipTaskFromWorkflow.skipTaskRequest", no_check)
    return fields["taskInput"], fields["taskOutput"]


def no_check(fields: dict[str, Any], position: DocumentPosition) -> None:
    """Check nothing beyond the fields."""


def _parse_body(request: HttpRequest) -> dict[str, Any]:
    body = request_body.read_bytes(request)
    if request.META.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return _parse_pairs(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
    return request_body.read_object(request) if body.strip() else {}


def _parse_pairs(pairs) -> dict[str, Any]:
    """Parse `taskInput[name]=value`, or `taskInput={…}` as JSON."""
    request_document: dict[str, Any] = {}
    for name, value in pairs:
        if found := NAMED_VALUE_PATTERN.fullmatch(name):
            request_document.setdefault(found[1], {})[found[2]] = value
        elif name in ("taskInput", "taskOutput") and value:
            request_document[name] = {**request_document.get(name, {}), **_parse_value(name, value)}
    return request_document


def _parse_value(name: str, value: str) -> dict[str, Any]:
    fields = request_body.parse_json(value.encode())
    if not isinstance(fields, dict):
        raise Invalid(f"Query parameter '{name}' must be a JSON object.")
    return fields


def step_reference(path: str, query: QueryParameters) -> str:
    """Return the reference in the path, or in the query if a client left the path's placeholder unfilled."""
    return query.required("taskReferenceName") if path == UNFILLED_REFERENCE else path


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """A state update of a workflow: variables, and a report on a task that its reference or its id names."""

    variables: dict[str, Any]
    report: Report | None
    ref: str
    attempt_id: str


def parse_state_update(document: dict[str, Any]) -> StateUpdate:
    """Return a WorkflowStateUpdate.

    Raises:
        ValidationFailed: when fields are invalid.
    """
    fields = read_request(document, STATE_UPDATE, "updateWorkflowState.updateRequest", _check_state)
    result = fields.get("taskResult")
    return StateUpdate(
        variables=fields["variables"],
        report=build_report(result) if result else None,
        ref=fields["taskReferenceName"],
        attempt_id=result["taskId"] if result else "",
    )


def _check_state(fields: dict[str, Any], position: DocumentPosition) -> None:
    result = fields.get("taskResult")
    if not result:
        return
    # The Java SDK leaves the status out to complete the task.
    result.setdefault("status", "COMPLETED")
    if not (fields["taskReferenceName"] or result["taskId"]):
        position.at("taskReferenceName").add_missing("Task reference name cannot be null or empty")


def check_upgrade(fields: dict[str, Any], position: DocumentPosition) -> None:
    """Check that an upgrade names a workflow. Without a version, the newest is meant."""
    if not fields["name"].strip():
        position.at("name").add_missing("Workflow name cannot be null or empty")


def parse_bulk_ids(body: Any, path: str, max_ids: int) -> list[str]:
    """Return the one to `max_ids` ids of a bulk request.

    Raises:
        ValidationFailed: when there are none or too many.
    """
    position = DocumentPosition(path)
    if not isinstance(body, list) or not body:
        position.add_error("WorkflowIds list cannot be null or empty")
    elif len(body) > max_ids:
        position.add_error(f"Cannot process more than {max_ids} workflows in one request; it names {len(body)}")
    elif not all(isinstance(each, str) for each in body):
        position.add_error("WorkflowIds must be texts")
    if position.validation_errors:
        raise ValidationFailed(position.validation_errors)
    return [each.replace("\0", "") for each in body]
