"""Parsing of a StartWorkflowRequest, and documents of a WorkflowStatus (api §3.8, §3.9)."""

from collections.abc import Mapping
from typing import Any

from ....core.document.checks import coerce_workflow
from ....core.document.checks.document_fields import FieldSpec, FieldTable, ObjectOf
from ....core.document.checks.values import (
    ChoiceOf,
    DocumentPosition,
    IntegerOf,
    ListOf,
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
from ....engine.runs.run_commands import StartRequest
from ....models import Run
from ..query_parameters import QueryParameters
from ..request_fields import read_request
from .debug_serializers import BREAKPOINT, build_request

MAX_DOMAIN_LENGTH = 128
IDEMPOTENCY_STRATEGIES = ("FAIL", "RETURN_EXISTING", "FAIL_ON_RUNNING")
KEY_HEADER, STRATEGY_HEADER = "X-Idempotency-Key", "X-On-Conflict"


def read_domains(value: Any, position: DocumentPosition) -> str:
    """Return a comma-separated list of domains.

    Raises:
        ValueRefused: when a domain is longer than a queue's name allows.
    """
    text = read_text(value, position).replace("\0", "")
    if any(len(domain.strip()) > MAX_DOMAIN_LENGTH for domain in text.split(",")):
        raise ValueRefused(f"must name domains of at most {MAX_DOMAIN_LENGTH} characters")
    return text


START_REQUEST: FieldTable = (
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
)


def parse_start_request(document: dict[str, Any]) -> StartRequest:
    """Return a StartWorkflowRequest.

    Raises:
        ValidationFailed: when fields are invalid
        Invalid: when the name is blank or the input is null.
    """
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
    )


def _check_start_request(fields: dict[str, Any], position: DocumentPosition) -> None:
    if "name" not in fields:
        position.at("name").add_missing("Workflow name cannot be null or empty")
    check_priority(fields["priority"], position.at("priority"))


def check_priority(priority: int, position: DocumentPosition) -> None:
    """Check that a priority is a number from 0 to 99."""
    if priority < 0:
        position.add_error(f"priority: {priority} should be minimum 0", priority)
    if priority > 99:
        position.add_error(f"priority: {priority} should be maximum 99", priority)


def workflow_status_document(run: Run, *, with_output: bool, with_variables: bool) -> dict[str, Any]:
    """Return a run as a WorkflowStatus."""
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
    """Return the start request of a path, its query and headers. The body is the input alone.

    Raises:
        ValidationFailed: when fields are invalid.
    """
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
    )


def parse_idempotency(headers: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the idempotency key and strategy from the headers.

    Raises:
        ValidationFailed: when they are invalid.
    """
    position = DocumentPosition("startWorkflow")
    key = read_at(position.at(KEY_HEADER), read_name, headers.get(KEY_HEADER) or None)
    strategy = read_at(
        position.at(STRATEGY_HEADER), ChoiceOf(*IDEMPOTENCY_STRATEGIES), headers.get(STRATEGY_HEADER) or None
    )
    if position.validation_errors:
        raise ValidationFailed(position.validation_errors)
    return key, strategy or "FAIL"
