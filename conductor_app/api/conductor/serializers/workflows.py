"""StartWorkflowRequest in, WorkflowStatus out (api §3.8, §3.9)."""

from collections.abc import Mapping
from typing import Any

from ....core.document.checks import coerce_workflow
from ....core.document.checks.fields import FieldSpec, FieldTable
from ....core.document.checks.values import (
    ChoiceOf,
    DocumentPosition,
    IntegerOf,
    MapOf,
    ValueRefused,
    read_any,
    read_at,
    read_mapping,
    read_name,
    read_text,
    texts,
)
from ....core.errors import Invalid, ValidationFailed
from ....engine.runs import StartRequest
from ....models import Run
from ..query_parameters import QueryParameters
from .requests import read_request

MOST_OF_DOMAIN = 128
STRATEGIES = ("FAIL", "RETURN_EXISTING", "FAIL_ON_RUNNING")
KEY_HEADER, STRATEGY_HEADER = "X-Idempotency-Key", "X-On-Conflict"


def domains(value: Any, place: DocumentPosition) -> str:
    """A comma-separated list of domains, each as long as a queue's name can hold."""
    given = read_text(value, place).replace("\0", "")
    if any(len(domain.strip()) > MOST_OF_DOMAIN for domain in given.split(",")):
        raise ValueRefused(f"must name domains of at most {MOST_OF_DOMAIN} characters")
    return given


START_REQUEST: FieldTable = (
    FieldSpec("name", read_name),
    FieldSpec("version", IntegerOf()),
    FieldSpec("correlationId", read_text, ""),
    FieldSpec("externalInputPayloadStoragePath", read_text),
    FieldSpec("input", read_mapping, dict),
    FieldSpec("taskToDomain", MapOf(domains), dict),
    FieldSpec("workflowDef", read_any),
    FieldSpec("priority", IntegerOf(), 0),
    FieldSpec("idempotencyKey", read_name),
    FieldSpec("idempotencyStrategy", ChoiceOf(*STRATEGIES), "FAIL"),
    FieldSpec("labels", texts),
    FieldSpec("startAt", IntegerOf(64)),
)


def start_request(document: dict[str, Any]) -> StartRequest:
    """A StartWorkflowRequest; raises ValidationFailed, and Invalid where the input is null."""
    read = read_request(document, START_REQUEST, "startWorkflow.startWorkflowRequest", _check)
    if "input" in document and document["input"] is None and not read.get("externalInputPayloadStoragePath"):
        raise Invalid("The input of a workflow cannot be null: send {} where there is none.")
    if not read["name"].strip():
        raise Invalid("Workflow name cannot be blank.")
    return StartRequest(
        name=read["name"],
        version=read.get("version"),
        input=read["input"],
        correlation_id=read["correlationId"],
        priority=read["priority"],
        domains=read["taskToDomain"],
        document=coerce_workflow(read["workflowDef"]) if "workflowDef" in read else None,
        idempotency_key=(read.get("idempotencyKey") or "").replace("\0", "") or None,
        idempotency_strategy=read["idempotencyStrategy"],
        input_path=read.get("externalInputPayloadStoragePath") or "",
        labels=tuple(read.get("labels") or ()),
        starts_at=read.get("startAt") or 0,
    )


def _check(read: dict[str, Any], place: DocumentPosition) -> None:
    if "name" not in read:
        place.at("name").add_missing("Workflow name cannot be null or empty")
    check_priority(read["priority"], place.at("priority"))


def check_priority(priority: int, place: DocumentPosition) -> None:
    """A priority is a number from 0 to 99."""
    if priority < 0:
        place.add_error(f"priority: {priority} should be minimum 0", priority)
    if priority > 99:
        place.add_error(f"priority: {priority} should be maximum 99", priority)


def workflow_status(run: Run, *, with_output: bool, with_variables: bool) -> dict[str, Any]:
    """A run as WorkflowStatus."""
    status: dict[str, Any] = {"workflowId": run.id, "status": run.status}
    if run.correlation_id:
        status["correlationId"] = run.correlation_id
    if with_output:
        status["output"] = run.output
    if with_variables:
        status["variables"] = run.variables
    return status


def start_by_name(
    name: str, query: QueryParameters, input: dict[str, Any], headers: Mapping[str, str] | None = None
) -> StartRequest:
    """The same from an address, its query and headers; the body is the input alone."""
    priority, place = query.whole("priority", 0), DocumentPosition("startWorkflow")
    check_priority(priority, place.at("priority"))
    if place.complaints:
        raise ValidationFailed(place.complaints)
    version = query.whole("version", 0) if query.text("version") else None
    key, strategy = idempotency(headers or {})
    return StartRequest(
        name=name,
        version=version,
        input=input,
        correlation_id=query.text("correlationId"),
        priority=priority,
        idempotency_key=key,
        idempotency_strategy=strategy,
    )


def idempotency(headers: Mapping[str, str]) -> tuple[str | None, str]:
    """Key and strategy where the body has no room for them: in headers. Raises ValidationFailed."""
    place = DocumentPosition("startWorkflow")
    key = read_at(place.at(KEY_HEADER), read_name, headers.get(KEY_HEADER) or None)
    strategy = read_at(place.at(STRATEGY_HEADER), ChoiceOf(*STRATEGIES), headers.get(STRATEGY_HEADER) or None)
    if place.complaints:
        raise ValidationFailed(place.complaints)
    return key, strategy or "FAIL"
