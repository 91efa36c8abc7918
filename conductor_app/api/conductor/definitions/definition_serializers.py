"""Documents of definitions: as they were saved, with a default for every absent field (api §3.2-3.4)."""

from typing import Any

from ....core.document.checks import normalize_task, normalize_workflow
from ....models import SchemaDefinition, TaskDefinition, WorkflowDefinition


def workflow_definition_document(row: WorkflowDefinition) -> dict[str, Any]:
    """Return a workflow definition as a WorkflowDef."""
    return {**normalize_workflow(row.document), "name": row.name, "version": row.version, **_audit_fields(row)}


def task_definition_document(row: TaskDefinition) -> dict[str, Any]:
    """Return a task definition as a TaskDef."""
    return {**normalize_task(row.document), "name": row.name, **_audit_fields(row)}


def schema_document(row: SchemaDefinition) -> dict[str, Any]:
    """Return a schema as a SchemaDef."""
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
    """Return a workflow definition as a WorkflowDefSummary."""
    times = {"createTime": row.created_at, "updateTime": row.updated_at}
    return {"name": row.name, "version": row.version} | {name: at for name, at in times.items() if at}


def classifier_of(document: dict[str, Any]) -> str:
    """Return the classifier of a definition: `workflow` unless its metadata names another (api §1.5)."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return "workflow"
    is_agent = "agent_sdk" in metadata or "agentDef" in metadata
    return str(metadata.get("classifier") or ("agent" if is_agent else "workflow")).lower()
