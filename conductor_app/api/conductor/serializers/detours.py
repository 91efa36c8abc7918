"""SkipTaskRequest, WorkflowStateUpdate and the ids of bulk requests, as clients send them (api §1.3, §2.1, §3.8)."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from django.http import HttpRequest

from ....core.errors import Invalid, ValidationFailed
from ....core.language.checks.fields import Field, Of, Table
from ....core.language.checks.values import Place, Whole, mapping, short_text, text, texts
from ....core.reports import Report
from ....json_values import is_deeper
from .. import body
from ..query import Query
from .requests import read_request
from .spelled import spelled_request
from .tasks import TASK_RESULT, report_of

SKIP_REQUEST: Table = (Field("taskInput", mapping, dict), Field("taskOutput", mapping, dict))
STATE_UPDATE: Table = (
    Field("taskReferenceName", text, ""),
    Field("taskResult", Of(TASK_RESULT)),
    Field("variables", mapping, dict),
)
CORRELATION: Table = (Field("correlationIds", texts, list), Field("workflowNames", texts, list))
UPGRADE: Table = (
    Field("name", short_text, ""),
    Field("version", Whole()),
    Field("taskOutput", mapping, dict),
    Field("workflowInput", mapping, dict),
)
NAMED_PART = re.compile(r"(taskInput|taskOutput)\[([^\[\]]+)\]")
UNFILLED = "{taskReferenceName}"
"""What two clients send instead of a reference, which they put into the query (api §2.1)."""


def skip_request(request: HttpRequest, query: Query) -> tuple[dict[str, Any], dict[str, Any]]:
    """Input and output of a task to be skipped: from a JSON body, a form, or the query."""
    given = _in_body(request)
    if not given and query.text("skipTaskRequest"):
        given = spelled_request(query.text("skipTaskRequest"))
    if not given:
        given = _in_pairs((name, value) for name, values in query.values.items() for value in values)
    if is_deeper(given, body.DEEPEST):
        raise Invalid(f"The request is nested more than {body.DEEPEST} levels deep.")
    read = read_request(given, SKIP_REQUEST, "skipTaskFromWorkflow.skipTaskRequest", anything_goes)
    return read["taskInput"], read["taskOutput"]


def anything_goes(read: dict[str, Any], place: Place) -> None:
    """Nothing is needed."""


def _in_body(request: HttpRequest) -> dict[str, Any]:
    sent = body.raw(request)
    if request.META.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return _in_pairs(parse_qsl(sent.decode(errors="replace"), keep_blank_values=True))
    return body.document(request) if sent.strip() else {}


def _in_pairs(pairs) -> dict[str, Any]:
    """`taskInput[name]=value`, or `taskInput={…}` as JSON."""
    given: dict[str, Any] = {}
    for name, value in pairs:
        if found := NAMED_PART.fullmatch(name):
            given.setdefault(found[1], {})[found[2]] = value
        elif name in ("taskInput", "taskOutput") and value:
            given[name] = {**given.get(name, {}), **_written(name, value)}
    return given


def _written(name: str, value: str) -> dict[str, Any]:
    read = body.parse(value.encode())
    if not isinstance(read, dict):
        raise Invalid(f"Query parameter '{name}' must be a JSON object.")
    return read


def reference(path: str, query: Query) -> str:
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


def _check_state(read: dict[str, Any], place: Place) -> None:
    result = read.get("taskResult")
    if not result:
        return
    if "status" not in result:
        place.at("taskResult").at("status").miss("Task status cannot be null or empty")
    if not (read["taskReferenceName"] or result["taskId"]):
        place.at("taskReferenceName").miss("Task reference name cannot be null or empty")


def check_upgrade(read: dict[str, Any], place: Place) -> None:
    """An upgrade names a workflow; without a version it is to the newest."""
    if not read["name"].strip():
        place.at("name").miss("Workflow name cannot be null or empty")


def ids_of(sent: Any, path: str, most: int) -> list[str]:
    """The ids that a bulk request names: one to `most`; raises ValidationFailed."""
    place = Place(path)
    if not isinstance(sent, list) or not sent:
        place.complain("WorkflowIds list cannot be null or empty")
    elif len(sent) > most:
        place.complain(f"Cannot process more than {most} workflows in one request; it names {len(sent)}")
    elif not all(isinstance(each, str) for each in sent):
        place.complain("WorkflowIds must be texts")
    if place.complaints:
        raise ValidationFailed(place.complaints)
    return [each.replace("\0", "") for each in sent]
