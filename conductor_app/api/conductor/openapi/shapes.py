"""Tables of fields as serializers: what a schema can be drawn from."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ....core.language.checks.fields import Of, Table
from ....core.language.checks.tables import CATCH_CASE, WORKFLOW_TASK, a_step, sub_workflow_document
from ....core.language.checks.values import Choice, ListOf, MapOf, Reader, Whole, anything, flag, mapping
from .tables import NAMED

STEP = {"$ref": "#/components/schemas/WorkflowTask"}
PLAIN: dict[Reader, dict[str, Any]] = {
    a_step: STEP,
    anything: {},
    flag: {"type": "boolean"},
    mapping: {"type": "object", "additionalProperties": {}},
    sub_workflow_document: {},
}
IN_STEPS = (WORKFLOW_TASK, CATCH_CASE)
"""Tables that steps are made of: they name a step, since they cannot hold the whole of one."""
_made: dict[int, type[serializers.Serializer]] = {}


def shape(table: Table) -> type[serializers.Serializer]:
    """The serializer of a table that has a name; always the same one."""
    if id(table) not in _made:
        name = next(name for name, named in NAMED.items() if named is table)
        fields = {field.name: _field(table, field.read) for field in table}
        _made[id(table)] = type(f"{name}Serializer", (serializers.Serializer,), fields)
    return _made[id(table)]


def _field(table: Table, reader: Reader) -> serializers.Field:
    if isinstance(reader, Of):
        return shape(reader.table)(required=False)
    item = reader.item if isinstance(reader, ListOf) else None
    if isinstance(item, Of):
        return shape(item.table)(many=True, required=False)
    if item is a_step and not any(table is inner for inner in IN_STEPS):
        return shape(WORKFLOW_TASK)(many=True, required=False)
    return _drawn(schema(reader))(required=False)


def _drawn(schema: dict[str, Any]) -> type[serializers.Field]:
    return extend_schema_field(schema)(type("Drawn", (serializers.JSONField,), {}))


def schema(reader: Reader) -> dict[str, Any]:
    """The JSON schema of what a reader reads."""
    if isinstance(reader, Whole):
        return {"type": "integer", "format": f"int{reader.bits}"}
    if isinstance(reader, Choice):
        # Wrapped, or the drawing would give each enumeration a name of its own and stumble over equal field names.
        return {"anyOf": [{"type": "string", "enum": list(reader.names)}]}
    if isinstance(reader, ListOf):
        return {"type": "array", "items": schema(reader.item)}
    if isinstance(reader, MapOf):
        return {"type": "object", "additionalProperties": schema(reader.item)}
    if isinstance(reader, Of):
        return {"type": "object", "properties": {field.name: schema(field.read) for field in reader.table}}
    return PLAIN.get(reader, {"type": "string"})
