"""Documents of definitions, schemas, tags, workflow tests and folders of definitions (api §3.2-3.8)."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from ...core.document.fields import (
    TASK_DEFINITION,
    WORKFLOW_DEFINITION,
    ChoiceOf,
    DocumentPosition,
    FieldSpec,
    FieldTable,
    IntegerOf,
    ListOf,
    MapOf,
    NamedTable,
    ObjectOf,
    Reader,
    normalize_task,
    normalize_workflow,
    read_boolean,
    read_mapping,
    read_text,
    seconds,
    texts,
)
from ...core.errors import ValidationFailed
from ...core.primitives import JsonValue
from ...core.simulation import SimulationScript, TaskMock
from ...runs.api.serializers import START_REQUEST, parse_start_request
from ...runs.commands.start import StartRequest
from ...tasks.api.serializers import OUTCOME_BY_STATUS
from ...web.api import requests as request_body
from ...web.api.documents import BULK, LONG, TAGS, fields_of_type, parse_tags
from ...web.api.requests import read_request
from ..models import SchemaDefinition, TaskDefinition, WorkflowDefinition

MOCK_OUTCOME_BY_STATUS = {**OUTCOME_BY_STATUS, "TIMED_OUT": "TIMED_OUT"}
"""The outcomes of mock results, by status."""
TEST_PATH = "testWorkflow.request"
MOCK: FieldTable = (
    FieldSpec("status", ChoiceOf(*MOCK_OUTCOME_BY_STATUS), "COMPLETED"),
    FieldSpec("output", read_mapping, dict),
    FieldSpec("executionTime", seconds, 0),
    FieldSpec("queueWaitTime", seconds, 0),
)
PYTHON_SDK_NAMES = {
    "_status": "status",
    "_output": "output",
    "_execution_time": "executionTime",
    "_queue_wait_time": "queueWaitTime",
}
"""The Python SDK sends its private names, and for a field that was not given the text of a Python object."""
TAGGED_WORKFLOW_DEFINITION = NamedTable("ExtendedWorkflowDef", *WORKFLOW_DEFINITION, TAGS)
TAGGED_TASK_DEFINITION = NamedTable("ExtendedTaskDef", *TASK_DEFINITION, TAGS)
SAVED_DRAFT = NamedTable("SavedDraft", *fields_of_type(read_text, "name", "author", "editor"))


def draft_document(name: str, author: str, newest: WorkflowDefinition | None) -> dict[str, Any]:
    """Return the document of a draft that was saved. `editor`: the path of the page on which a person opens it."""
    if newest is None:
        page, query = reverse("admin:conductor_workflowdefinition_add"), {"draft": author, "name": name}
    else:
        page, query = reverse("admin:workflowdefinition_edit", args=[newest.pk]), {"draft": author}
    return {"name": name, "author": author, "editor": f"{page}?{urlencode(query)}"}


FINDING = NamedTable(
    "WorkflowDefFinding",
    FieldSpec("severity", ChoiceOf("error", "warning", "hint")),
    *fields_of_type(read_text, "kind", "path", "message"),
)
FINDINGS = NamedTable("WorkflowDefFindings", FieldSpec("findings", ListOf(ObjectOf(FINDING))))
DEFINITION_SUMMARY = NamedTable(
    "WorkflowDefSummary",
    FieldSpec("name", read_text),
    FieldSpec("version", IntegerOf()),
    *fields_of_type(IntegerOf(64), "createTime", "updateTime"),
)
SAVED_DEFINITIONS = NamedTable("BulkResponseWorkflowDef", *BULK, FieldSpec("findings", ListOf(ObjectOf(FINDING))))
SOURCE_ERROR = NamedTable("DefinitionError", *fields_of_type(read_text, "path", "message"))
SOURCE_ITEM = NamedTable(
    "DefinitionPlanItem",
    *fields_of_type(read_text, "kind", "name", "action", "problem"),
    *fields_of_type(IntegerOf(), "version", "document"),
    *fields_of_type(texts, "changes", "edits"),
    FieldSpec("validationErrors", ListOf(ObjectOf(SOURCE_ERROR))),
)
SOURCE_PLAN = NamedTable(
    "DefinitionPlan",
    *fields_of_type(read_text, "label", "planDigest"),
    *fields_of_type(read_boolean, "changesSomething", "isRefused"),
    FieldSpec("items", ListOf(ObjectOf(SOURCE_ITEM))),
)
APPLIED_ITEM = NamedTable("AppliedDefinition", *SOURCE_ITEM, FieldSpec("error", read_text))
SOURCE_APPLICATION = NamedTable(
    "DefinitionApplication",
    FieldSpec("label", read_text),
    FieldSpec("items", ListOf(ObjectOf(APPLIED_ITEM))),
    FieldSpec("failed", IntegerOf()),
)
DRIFT = NamedTable(
    "DefinitionDrift",
    *fields_of_type(read_text, "kind", "name", "label", "commit", "appliedBy", "changedBy"),
    FieldSpec("state", ChoiceOf("deleted", "edited", "unchanged")),
    *fields_of_type(LONG, "appliedAt", "changedAt"),
    *fields_of_type(IntegerOf(), "version", "statedVersion", "newerVersion"),
    FieldSpec("edits", texts),
    FieldSpec("current", read_mapping),
)
DRIFTS = NamedTable("DefinitionDrifts", FieldSpec("definitions", ListOf(ObjectOf(DRIFT))))


def workflow_definition_document(row: WorkflowDefinition) -> dict[str, Any]:
    return {**normalize_workflow(row.document), "name": row.name, "version": row.version, **_audit_fields(row)}


def task_definition_document(row: TaskDefinition) -> dict[str, Any]:
    return {**normalize_task(row.document), "name": row.name, **_audit_fields(row)}


def schema_document(row: SchemaDefinition) -> dict[str, Any]:
    return {**row.document, "name": row.name, "version": row.version, **_audit_fields(row)}


def short_schema_document(row: SchemaDefinition) -> dict[str, Any]:
    """Return a SchemaDef without its data, for lists."""
    return {name: value for name, value in schema_document(row).items() if name != "data"}


def _audit_fields(row: WorkflowDefinition | TaskDefinition | SchemaDefinition) -> dict[str, Any]:
    """Return author and timestamps from the row, whatever the document says."""
    people = {"createdBy": row.created_by, "updatedBy": row.updated_by if row.updated_at else ""}
    times = {"createTime": row.created_at, "updateTime": row.updated_at}
    return times | {name: person for name, person in people.items() if person}


def definition_summary(row: WorkflowDefinition) -> dict[str, Any]:
    times = {"createTime": row.created_at, "updateTime": row.updated_at}
    return {"name": row.name, "version": row.version} | {name: at for name, at in times.items() if at}


def classifier_of(document: dict[str, Any]) -> str:
    """Return the classifier of a definition: `workflow` unless its metadata names another (api §1.5)."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return "workflow"
    is_agent = "agent_sdk" in metadata or "agentDef" in metadata
    return str(metadata.get("classifier") or ("agent" if is_agent else "workflow")).lower()


def read_mock(value: JsonValue, position: DocumentPosition) -> dict[str, Any]:
    """Return one TaskMock. Both spellings of its fields are accepted."""
    renamed = {PYTHON_SDK_NAMES.get(name, name): each for name, each in read_mapping(value, position).items()}
    renamed = {
        name: each
        for name, each in renamed.items()
        if not (isinstance(each, str) and each.startswith("<property object"))
    }
    return ObjectOf(MOCK)(renamed, position)


def script_fields(mock: Reader) -> FieldTable:
    """Return the fields of a test request beyond those of a start request."""
    mocks = FieldSpec("taskRefToMockOutput", MapOf(ListOf(mock)), dict)
    return (mocks, FieldSpec("subWorkflowTestRequest", MapOf(read_mapping), dict))


SCRIPT_FIELDS = script_fields(read_mock)


TEST_REQUEST = NamedTable("WorkflowTestRequest", *START_REQUEST, *script_fields(ObjectOf(MOCK)))


def parse_test_request(document: dict[str, Any]) -> tuple[StartRequest, SimulationScript]:
    """Return the start request and the mock results of a WorkflowTestRequest."""
    return parse_start_request(document), parse_script(document, TEST_PATH)


def parse_script(document: dict[str, Any], path: str) -> SimulationScript:
    """Return the mock results for one workflow and for its sub-workflows."""
    fields = read_request(document, SCRIPT_FIELDS, path)
    mocks = {ref: tuple(map(parse_mock, each)) for ref, each in fields["taskRefToMockOutput"].items() if each}
    inner = fields["subWorkflowTestRequest"]
    children = {ref: parse_script(each, f"{path}.subWorkflowTestRequest[{ref}]") for ref, each in inner.items() if each}
    return SimulationScript(mocks, children)


def parse_mock(fields: dict[str, Any]) -> TaskMock:
    return TaskMock(
        MOCK_OUTCOME_BY_STATUS[fields["status"]],
        fields["output"],
        max(fields["queueWaitTime"], 0),
        max(fields["executionTime"], 0),
    )


def read_tags(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the tags in a request's body: a list, or a single one."""
    value, position = request_body.read_json(request), DocumentPosition("tags")
    parsed = parse_tags([value] if isinstance(value, dict) else value, position)
    if position.validation_errors:
        raise ValidationFailed(position.validation_errors)
    return parsed


def take_tags(document: JsonValue) -> tuple[list[dict[str, Any]], bool] | None:
    """Remove the tags from the document of a definition, and return them and whether they replace the present ones.

    The Go SDK sends `tags` and `overwriteTags` inside definitions.

    Raises:
        ValidationFailed: when a tag is invalid.
    """
    overwrites = document.pop("overwriteTags", False) if isinstance(document, dict) else False
    value = document.pop("tags", None) if isinstance(document, dict) else None
    if value is None:
        return None
    position = DocumentPosition("tags")
    parsed = parse_tags(value, position)
    if position.validation_errors:
        raise ValidationFailed(position.validation_errors)
    return parsed, overwrites is True


def subtract_tags(existing: list[dict[str, Any]], removed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tags without those that have the key and value of a removed one."""
    removed_keys = {(tag["key"], tag["value"]) for tag in removed}
    return [tag for tag in existing if (tag["key"], tag["value"]) not in removed_keys]
