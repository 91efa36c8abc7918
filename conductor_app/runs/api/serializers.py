"""Documents of runs: requests to start, rerun, skip and update, and replies to waiting requests (api §3.8, §3.9)."""

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from django.http import HttpRequest

from ...core.decide import Report
from ...core.document.fields import (
    ChoiceOf,
    DocumentPosition,
    FieldSpec,
    FieldTable,
    IntegerOf,
    ListOf,
    MapOf,
    NamedTable,
    ObjectOf,
    OrNull,
    ValueRefused,
    coerce_workflow,
    read_any,
    read_at,
    read_boolean,
    read_mapping,
    read_name,
    read_text,
    read_weight,
    texts,
)
from ...core.errors import Invalid, ValidationFailed
from ...core.fairness import build_share
from ...core.primitives import JsonValue
from ...core.trace_context import HEADER, parse_traceparent
from ...tasks.api.serializers import TASK_RESULT, build_report
from ...utils.json_values import is_deeper
from ...web.api import requests as request_body
from ...web.api.documents import TASK, TASK_STATUS, WORKFLOW, WORKFLOW_STATUS, fields_of_type
from ...web.api.requests import QueryParameters, read_request
from ..commands.start import StartRequest
from ..models import Run
from .debugger import BREAKPOINT, build_request

MAX_LENGTH = 65_536
GO_REQUEST = re.compile(r"\{map\[.*\] map\[.*\]\}", re.DOTALL)
GO_ENTRY = re.compile(r"(?:^| )([^\s:\[\]]+):")
GO_WORDS = {"true": True, "false": False, "<nil>": None}


def parse_query_document(text: str) -> dict[str, Any]:
    """Return the request that a text represents."""
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise Invalid(f"skipTaskRequest may have at most {MAX_LENGTH} characters. Send it as the JSON body.")
    if text in ("", "{}", "None", "null", "{map[] map[]}"):
        return {}
    if GO_REQUEST.fullmatch(text):
        return _parse_go_request(text)
    try:
        # Encode and parse as JSON: keys become texts, and values that JSON cannot represent are refused.
        parsed = json.loads(json.dumps(_parse_python_value(text), allow_nan=False))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise Invalid("Invalid skipTaskRequest. Send it as the JSON body.") from None
    if not isinstance(parsed, dict):
        raise Invalid("skipTaskRequest must be an object with taskInput and taskOutput.")
    return parsed


def _parse_python_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text)


def _parse_go_request(text: str) -> dict[str, Any]:
    """Parse `{map[a:1] map[b:two words]}`, which is input and output. Types are guessed because the text has none."""
    first, position = _parse_brackets(text, text.find("["))
    second, _ = _parse_brackets(text, text.find("[", position))
    return {"taskInput": _parse_go_map(first), "taskOutput": _parse_go_map(second)}


def _parse_brackets(text: str, start: int) -> tuple[str, int]:
    """Return the text between the bracket at `start` and its closing bracket, and the position after that."""
    depth = 0
    for position in range(start, len(text)) if start >= 0 else ():
        depth += {"[": 1, "]": -1}.get(text[position], 0)
        if depth == 0:
            return text[start + 1 : position], position + 1
    raise Invalid("Invalid skipTaskRequest: unbalanced brackets. Send it as the JSON body.")


def _parse_go_map(inner: str, level: int = 0) -> dict[str, Any]:
    depths = _bracket_depths(inner)
    entries = [found for found in GO_ENTRY.finditer(inner) if depths[found.start(1)] == 0]
    ends = [*(found.start() for found in entries), len(inner)][1:]
    return {
        found[1]: _parse_go_value(inner[found.end() : end], level) for found, end in zip(entries, ends, strict=True)
    }


def _bracket_depths(text: str) -> list[int]:
    depths, depth = [], 0
    for letter in text:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        depths.append(depth)
    return depths


def _parse_go_value(text: str, level: int) -> Any:
    if text.startswith("map[") and text.endswith("]") and level < 50:
        return _parse_go_map(text[4:-1], level + 1)
    if text.startswith("[") and text.endswith("]") and "[" not in text[1:]:
        return [_parse_go_value(each, level) for each in text[1:-1].split(" ") if each]
    if text in GO_WORDS:
        return GO_WORDS[text]
    try:
        return json.loads(text) if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d{1,2})?", text) else text
    except ValueError:
        return text


MAX_DOMAIN_LENGTH = 128
IDEMPOTENCY_STRATEGIES = ("FAIL", "RETURN_EXISTING", "FAIL_ON_RUNNING")
KEY_HEADER, STRATEGY_HEADER = "X-Idempotency-Key", "X-On-Conflict"


def read_domains(value: JsonValue, position: DocumentPosition) -> str:
    """Return a comma-separated list of domains."""
    text = read_text(value, position).replace("\0", "")
    if any(len(domain.strip()) > MAX_DOMAIN_LENGTH for domain in text.split(",")):
        raise ValueRefused(f"must name domains of at most {MAX_DOMAIN_LENGTH} characters")
    return text


START_REQUEST = NamedTable(
    "StartWorkflowRequest",
    FieldSpec("name", read_name),
    FieldSpec("version", IntegerOf()),
    FieldSpec("correlationId", read_text, ""),
    FieldSpec("externalInputPayloadStoragePath", read_text),
    FieldSpec("input", read_mapping, dict),
    FieldSpec("taskToDomain", MapOf(read_domains), dict),
    FieldSpec("workflowDef", read_any),
    FieldSpec("priority", IntegerOf(), 0),
    FieldSpec("idempotencyKey", read_name),
    FieldSpec("idempotencyStrategy", ChoiceOf(*IDEMPOTENCY_STRATEGIES), "FAIL"),
    FieldSpec("labels", texts),
    FieldSpec("startAt", IntegerOf(64)),
    FieldSpec("breakpoints", ListOf(ObjectOf(BREAKPOINT))),
    FieldSpec("fairnessKey", read_name),
    FieldSpec("fairnessWeight", read_weight),
)


def parse_start_request(document: dict[str, Any], headers: Mapping[str, str] | None = None) -> StartRequest:
    """Return a StartWorkflowRequest. `headers`: those of its HTTP request."""
    fields = read_request(document, START_REQUEST, "startWorkflow.startWorkflowRequest", _check_start_request)
    if "input" in document and document["input"] is None and not fields.get("externalInputPayloadStoragePath"):
        raise Invalid("The input of a workflow must not be null. Send {} for an empty input.")
    definition = coerce_workflow(fields["workflowDef"]) if "workflowDef" in fields else None
    # The Go SDK sends an empty name beside a definition.
    name = fields["name"] if fields["name"].strip() else str((definition or {}).get("name") or "")
    if not name.strip():
        raise Invalid("Workflow name cannot be blank.")
    return StartRequest(
        name=name,
        version=fields.get("version"),
        input=fields["input"],
        correlation_id=fields["correlationId"],
        priority=fields["priority"],
        domains=fields["taskToDomain"],
        document=definition,
        idempotency_key=(fields.get("idempotencyKey") or "").replace("\0", "") or None,
        idempotency_strategy=fields["idempotencyStrategy"],
        input_path=fields.get("externalInputPayloadStoragePath") or "",
        labels=tuple(fields.get("labels") or ()),
        starts_at=fields.get("startAt") or 0,
        breakpoints=tuple(map(build_request, fields.get("breakpoints") or ())),
        traceparent=parse_traceparent((headers or {}).get(HEADER)),
        fairness=build_share(fields.get("fairnessKey"), fields.get("fairnessWeight")),
    )


def _check_start_request(fields: dict[str, Any], position: DocumentPosition) -> None:
    if "name" not in fields:
        position.at("name").add_missing("Workflow name cannot be null or empty")
    check_priority(fields["priority"], position.at("priority"))
    if "fairnessWeight" in fields and not fields.get("fairnessKey"):
        position.at("fairnessWeight").add_error("fairnessWeight needs a fairnessKey", fields["fairnessWeight"])


def check_priority(priority: int, position: DocumentPosition) -> None:
    """Check that a priority is a number from 0 to 99."""
    if priority < 0:
        position.add_error(f"priority: {priority} should be minimum 0", priority)
    if priority > 99:
        position.add_error(f"priority: {priority} should be maximum 99", priority)


def workflow_status_document(run: Run, *, with_output: bool, with_variables: bool) -> dict[str, Any]:
    status: dict[str, Any] = {"workflowId": run.id, "status": run.status}
    if run.correlation_id:
        status["correlationId"] = run.correlation_id
    if with_output:
        status["output"] = run.output
    if with_variables:
        status["variables"] = run.variables
    return status


def parse_start_by_name(
    name: str, query: QueryParameters, input: dict[str, Any], headers: Mapping[str, str] | None = None
) -> StartRequest:
    """Return the start request of a path, its query and headers. The body is the input alone."""
    priority, position = query.integer("priority", 0), DocumentPosition("startWorkflow")
    check_priority(priority, position.at("priority"))
    if position.validation_errors:
        raise ValidationFailed(position.validation_errors)
    version = query.integer("version", 0) if query.text("version") else None
    key, strategy = parse_idempotency(headers or {})
    return StartRequest(
        name=name,
        version=version,
        input=input,
        correlation_id=query.text("correlationId"),
        priority=priority,
        idempotency_key=key,
        idempotency_strategy=strategy,
        traceparent=parse_traceparent((headers or {}).get(HEADER)),
    )


def parse_idempotency(headers: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the idempotency key and strategy from the headers."""
    position = DocumentPosition("startWorkflow")
    key = read_at(position.at(KEY_HEADER), read_name, headers.get(KEY_HEADER) or None)
    strategy = read_at(
        position.at(STRATEGY_HEADER), ChoiceOf(*IDEMPOTENCY_STRATEGIES), headers.get(STRATEGY_HEADER) or None
    )
    if position.validation_errors:
        raise ValidationFailed(position.validation_errors)
    return key, strategy or "FAIL"


RERUN_REQUEST = NamedTable(
    "RerunWorkflowRequest",
    FieldSpec("reRunFromWorkflowId", read_text),
    FieldSpec("workflowInput", read_mapping),
    FieldSpec("reRunFromTaskId", read_text, ""),
    FieldSpec("taskInput", read_mapping),
    FieldSpec("correlationId", read_text),
)
"""The workflow's id is ignored: the address names it."""


def parse_rerun_request(document: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a rerun."""
    fields = read_request(document, RERUN_REQUEST, "rerunWorkflow.request")
    if document.get("reRunFromTaskId") and not fields["reRunFromTaskId"]:
        # Only NUL characters: neither a task nor the whole workflow was meant.
        raise Invalid("Invalid reRunFromTaskId.")
    return {
        "attempt_id": fields["reRunFromTaskId"],
        "task_input": fields.get("taskInput"),
        "input": fields.get("workflowInput"),
        "correlation_id": fields.get("correlationId"),
    }


SKIP_REQUEST = NamedTable(
    "SkipTaskRequest", FieldSpec("taskInput", read_mapping, dict), FieldSpec("taskOutput", read_mapping, dict)
)
STATE_UPDATE = NamedTable(
    "WorkflowStateUpdate",
    FieldSpec("taskReferenceName", read_text, ""),
    FieldSpec("taskResult", ObjectOf(TASK_RESULT)),
    FieldSpec("variables", read_mapping, dict),
)
CORRELATION = NamedTable(
    "CorrelationIdsSearchRequest", FieldSpec("correlationIds", texts, list), FieldSpec("workflowNames", texts, list)
)
UPGRADE = NamedTable(
    "UpgradeWorkflowRequest",
    FieldSpec("name", read_name, ""),
    FieldSpec("version", IntegerOf()),
    FieldSpec("taskOutput", read_mapping, dict),
    FieldSpec("workflowInput", read_mapping, dict),
)
NAMED_VALUE_PATTERN = re.compile(r"(taskInput|taskOutput)\[([^\[\]]+)\]")
UNFILLED_REFERENCE = "{taskReferenceName}"
"""The placeholder that two clients send instead of a reference, which they put into the query (api §2.1)."""


def parse_skip_request(request: HttpRequest, query: QueryParameters) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return input and output of a task to skip, from a JSON body, a form, or the query."""
    request_document = _parse_body(request)
    if not request_document and query.text("skipTaskRequest"):
        request_document = parse_query_document(query.text("skipTaskRequest"))
    if not request_document:
        request_document = _parse_pairs((name, value) for name, values in query.values.items() for value in values)
    if is_deeper(request_document, request_body.MAX_DEPTH):
        raise Invalid(f"The request is nested more than {request_body.MAX_DEPTH} levels deep.")
    fields = read_request(request_document, SKIP_REQUEST, "skipTaskFromWorkflow.skipTaskRequest")
    return fields["taskInput"], fields["taskOutput"]


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
    """Return a WorkflowStateUpdate."""
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
    """Return the one to `max_ids` ids of a bulk request."""
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


SIGNAL_RESPONSE = NamedTable(
    "SignalResponse",
    FieldSpec("responseType", ChoiceOf("TARGET_WORKFLOW", "BLOCKING_WORKFLOW", "BLOCKING_TASK", "BLOCKING_TASK_INPUT")),
    FieldSpec("targetWorkflowStatus", WORKFLOW_STATUS),
    *fields_of_type(read_text, "targetWorkflowId", "requestId", "workflowId", "correlationId", "status", "createdBy",
           "taskType",
            "taskId", "referenceTaskName", "taskDefName", "retriedTaskId", "workflowType", "reasonForIncompletion"),
    *fields_of_type(read_mapping, "input", "output", "variables"),
    *fields_of_type(IntegerOf(), "priority", "retryCount"),
    *fields_of_type(IntegerOf(64), "createTime", "updateTime"),
    FieldSpec("tasks", ListOf(ObjectOf(TASK))),
    FieldSpec("signalTimeout", read_boolean),
)  # fmt: skip
STATUS = NamedTable(
    "WorkflowStatus",
    *fields_of_type(read_text, "workflowId", "correlationId"),
    *fields_of_type(read_mapping, "output", "variables"),
    FieldSpec("status", WORKFLOW_STATUS),
)
TASK_PAGE = NamedTable(
    "SearchResultTask", FieldSpec("totalHits", IntegerOf(64)), FieldSpec("results", ListOf(ObjectOf(TASK)))
)
PAGE: FieldTable = (
    FieldSpec("totalHits", IntegerOf(64)),
    FieldSpec("totalHitsIsLowerBound", read_boolean),
    FieldSpec("searchedSince", OrNull(IntegerOf(64))),
)
WORKFLOW_PAGE = NamedTable("SearchResultWorkflow", *PAGE, FieldSpec("results", ListOf(ObjectOf(WORKFLOW))))
WORKFLOW_SUMMARY = NamedTable(
    "WorkflowSummary",
    *fields_of_type(read_text, "workflowId", "workflowType", "correlationId", "startTime", "updateTime",
           "endTime", "input",
            "output", "reasonForIncompletion", "event", "failedReferenceTaskNames", "createdBy", "idempotencyKey",
            "parentWorkflowId", "classifier", "externalInputPayloadStoragePath",
            "externalOutputPayloadStoragePath"),
    *fields_of_type(IntegerOf(), "version", "priority", "inputSize", "outputSize"),
    FieldSpec("status", WORKFLOW_STATUS),
    FieldSpec("executionTime", IntegerOf(64)),
    FieldSpec("failedTaskNames", texts),
    FieldSpec("taskToDomain", MapOf(read_text)),
)  # fmt: skip
WORKFLOW_SUMMARY_PAGE = NamedTable(
    "SearchResultWorkflowSummary",
    *PAGE,
    FieldSpec("queryId", read_text),
    FieldSpec("results", ListOf(ObjectOf(WORKFLOW_SUMMARY))),
)
TASK_SUMMARY = NamedTable(
    "TaskSummary",
    *fields_of_type(read_text, "workflowId", "workflowType", "correlationId", "scheduledTime", "startTime",
                    "updateTime",
           "endTime",
            "reasonForIncompletion", "taskDefName", "taskType", "input", "output", "taskId", "domain",
            "externalInputPayloadStoragePath", "externalOutputPayloadStoragePath"),
    *fields_of_type(IntegerOf(64), "executionTime", "queueWaitTime"),
    FieldSpec("workflowPriority", IntegerOf()),
    FieldSpec("status", TASK_STATUS),
)  # fmt: skip
TASK_SUMMARY_PAGE = NamedTable("SearchResultTaskSummary", *PAGE, FieldSpec("results", ListOf(ObjectOf(TASK_SUMMARY))))
