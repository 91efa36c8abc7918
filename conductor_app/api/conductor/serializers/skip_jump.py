"""SkipTaskRequest, WorkflowStateUpdate and the ids of bulk requests, as clients send them (api §1.3, §2.1, §3.8)."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from django.http import HttpRequest

from ....core.document.checks.fields import FieldSpec, FieldTable, ObjectOf
from ....core.document.checks.values import DocumentPosition, IntegerOf, read_mapping, read_name, read_text, texts
from ....core.errors import Invalid, ValidationFailed
from ....core.reports import Report
from ....json_values import is_deeper
from .. import request_body
from ..query_parameters import QueryParameters
from .lenient_query_documents import parse_query_document
from .requests import read_request
from .tasks import TASK_RESULT, report_of

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
NAMED_PART = re.compile(r"(taskInput|taskOutput)\[([^\[\]]+)\]")
UNFILLED = "{taskReferenceName}"
"""What two clients send instead of a reference, which they put into the query (api §2.1)."""


def skip_request(request: HttpRequest, query: QueryParameters) -> tuple[dict[str, Any], dict[str, Any]]:
    """Input and output of a task to be skipped: from a JSON body, a form, or the query."""
    given = _in_body(request)
    if not given and query.text("skipTaskRequest"):
        given = parse_query_document(query.text("skipTaskRequest"))
    if not given:
        given = _in_pairs((name, value) for name, values in query.values.items() for value in values)
    if is_deeper(given, request_body.MAX_DEPTH):
        raise Invalid(f"The request is nested more than {request_body.MAX_DEPTH} levels deep.")
    read = read_request(given, SKIP_REQUEST, "skipTaskFromWorkflow.skipTaskRequest", no_check)
    return read["taskInput"], read["taskOutput"]


def no_check(read: dict[str, Any], place: DocumentPosition) -> None:
    """Nothing is needed."""


def _in_body(request: HttpRequest) -> dict[str, Any]:
    sent = request_body.read_bytes(request)
    if request.META.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return _in_pairs(parse_qsl(sent.decode(errors="replace"), keep_blank_values=True))
    return request_body.read_object(request) if sent.strip() else {}


def _in_pairs(pairs) -> dict[str, Any]:
    """`taskInput[name]=value`, or `taskInput={…}` as JSON."""
    given: dict[str, Any] = {}
    for name, value in pairs:
        if found := NAMED_PART.fullmatch(name):
            given.setdefault(found[1], {})[found[2]] = value
        elif name in ("taskInput", "taskOutput") and value:
            given[name] = {**given.get(name, {}), **_parse_value(name, value)}
    return given


def _parse_value(name: str, value: str) -> dict[str, Any]:
    read = request_body.parse_json(value.encode())
    if not isinstance(read, dict):
        raise Invalid(f"Query parameter '{name}' must be a JSON object.")
    return read


def step_reference(path: str, query: QueryParameters) -> str:
    """The reference that is meant: of the address, or of the query where a client left the address unfilled."""
    return query.required("taskReferenceName") if path == UNFILLED else path


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """What is told of a workflow: variables, and a report on a task, named by its reference or its id."""

    variables: dict[str, Any]
    report: Report | None
    ref: str
    attempt_id: str


def state_update(document: dict[str, Any]) -> StateUpdate:
    """A WorkflowStateUpdate; raises ValidationFailed."""
    read = read_request(document, STATE_UPDATE, "updateWorkflowState.updateRequest", _check_state)
    result = read.get("taskResult")
    return StateUpdate(
        variables=read["variables"],
        report=report_of(result) if result else None,
        ref=read["taskReferenceName"],
        attempt_id=result["taskId"] if result else "",
    )


def _check_state(read: dict[str, Any], place: DocumentPosition) -> None:
    result = read.get("taskResult")
    if not result:
        return
    if "status" not in result:
        place.at("taskResult").at("status").add_missing("Task status cannot be null or empty")
    if not (read["taskReferenceName"] or result["taskId"]):
        place.at("taskReferenceName").add_missing("Task reference name cannot be null or empty")


def check_upgrade(read: dict[str, Any], place: DocumentPosition) -> None:
    """An upgrade names a workflow; without a version it is to the newest."""
    if not read["name"].strip():
        place.at("name").add_missing("Workflow name cannot be null or empty")


def parse_bulk_ids(sent: Any, path: str, most: int) -> list[str]:
    """The ids that a bulk request names: one to `most`; raises ValidationFailed."""
    place = DocumentPosition(path)
    if not isinstance(sent, list) or not sent:
        place.add_error("WorkflowIds list cannot be null or empty")
    elif len(sent) > most:
        place.add_error(f"Cannot process more than {most} workflows in one request; it names {len(sent)}")
    elif not all(isinstance(each, str) for each in sent):
        place.add_error("WorkflowIds must be texts")
    if place.complaints:
        raise ValidationFailed(place.complaints)
    return [each.replace("\0", "") for each in sent]
