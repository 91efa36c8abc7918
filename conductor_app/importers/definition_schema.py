"""A JSON Schema of the documents in a folder, generated from the tables of fields, for completion in editors."""

from collections.abc import Iterable
from typing import Any

from conductor_app.api.conductor.openapi.shapes import STEP_REFERENCE, schema_of
from conductor_app.api.conductor.schedules.schedule_serializers import SCHEDULE
from conductor_app.core.document.checks.document_fields import FieldTable, ObjectOf
from conductor_app.core.document.checks.event_handler import EVENT_HANDLER
from conductor_app.core.document.checks.field_specs import SCHEMA, TASK_DEFINITION, WORKFLOW_DEFINITION
from conductor_app.core.document.checks.operator_documents import ALERT, QUEUE_LIMIT, ROLE
from conductor_app.core.document.checks.step_fields import STEP_FIELDS
from conductor_app.core.form_templates import FORM_TEMPLATE
from conductor_app.core.step_structure import STEP_STRUCTURES

SERVER_FIELDS = frozenset(("createTime", "updateTime", "createdBy", "updatedBy"))
KINDS: dict[str, tuple[FieldTable, tuple[str, ...]]] = {
    "workflow": (WORKFLOW_DEFINITION, ("name", "tasks")),
    "task": (TASK_DEFINITION, ("name",)),
    "schedule": (SCHEDULE, ("name", "startWorkflowRequest")),
    "event-handler": (EVENT_HANDLER, ("name", "event", "actions")),
    "form-template": (FORM_TEMPLATE, ("name",)),
    "schema": (SCHEMA, ("name",)),
    # Its other fields are also those of a task definition.
    "queue-limit": (QUEUE_LIMIT, ("kind", "name")),
    "alert": (ALERT, ("name", "conditions")),
    "role": (ROLE, ("name", "permissions")),
}
"""The fields of each kind, and those that a document must have."""


def folder_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file: one definition or a list of definitions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Definitions of Conductor",
        "anyOf": [
            {"$ref": "#/$defs/definition"},
            {"type": "array", "items": {"$ref": "#/$defs/definition"}},
        ],
        "$defs": {
            "definition": _definition(),
            **{name: _object(table, required) for name, (table, required) in KINDS.items()},
        },
        "components": {
            "schemas": {
                STEP_REFERENCE["$ref"].rpartition("/")[2]: _step(),
                # The definition of a sub-workflow that is written in place.
                "WorkflowDef": {"$ref": "#/$defs/workflow"},
            }
        },
    }


def _definition() -> dict[str, Any]:
    """Return the schema of a definition of any kind: that of its `kind`, or of the fields that it must have."""
    stated = [
        {
            "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": {"$ref": f"#/$defs/{name}"},
        }
        for name in KINDS
    ]
    any_kind = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in KINDS]}
    return {
        "type": "object",
        "properties": {"kind": {"enum": [*KINDS]}},
        "allOf": [*stated, {"if": {"not": {"required": ["kind"]}}, "then": any_kind}],
    }


def _step() -> dict[str, Any]:
    own = {spec.name: spec for structure in STEP_STRUCTURES.values() for spec in structure.fields}
    step = _object((*STEP_FIELDS, *own.values()), ("name", "taskReferenceName"))
    # A worker's task can have any type.
    step["properties"]["type"] = {"anyOf": [{"enum": sorted(STEP_STRUCTURES)}, {"type": "string"}]}
    return step


def _object(table: FieldTable, required: Iterable[str]) -> dict[str, Any]:
    schema = schema_of(ObjectOf(table))
    schema["properties"] = {name: found for name, found in schema["properties"].items() if name not in SERVER_FIELDS}
    return {**schema, "required": [*required]}
