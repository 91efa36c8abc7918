"""Field tables as serializers, from which the schemas are generated."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ....core.document.checks.document_fields import FieldTable, ObjectOf
from ....core.document.checks.field_specs import read_step, read_sub_workflow
from ....core.document.checks.step_fields import STEP_FIELDS
from ....core.document.checks.values import (
    ChoiceOf,
    IntegerOf,
    ListOf,
    MapOf,
    OrNull,
    Reader,
    read_any,
    read_boolean,
    read_mapping,
    read_number,
)
from ....core.step_types.try_catch import CATCH_CASE
from ..definitions.tag_serializers import read_tag_value
from .insight_tables import INSIGHT_TABLES
from .tables import TABLE_BY_NAME

STEP_REFERENCE = {"$ref": "#/components/schemas/WorkflowTask"}
SCHEMA_BY_READER: dict[Reader, dict[str, Any]] = {
    read_step: STEP_REFERENCE,
    read_any: {},
    read_boolean: {"type": "boolean"},
    read_mapping: {"type": "object", "additionalProperties": {}},
    read_number: {"type": "number"},
    read_sub_workflow: {"anyOf": [{"$ref": "#/components/schemas/WorkflowDef"}, {"type": "string"}]},
    read_tag_value: {"anyOf": [{"type": "string"}, {"type": "integer", "format": "int32"}]},
}
STEP_TABLES = (STEP_FIELDS, CATCH_CASE)
"""Tables that steps are made of: they name a step, since they cannot hold the whole of one."""
_serializers: dict[int, type[serializers.Serializer]] = {}


def serializer_of(table: FieldTable) -> type[serializers.Serializer]:
    """Return the serializer of a named table, always the same object."""
    if id(table) not in _serializers:
        fields = {field.name: _field_of(table, field.read) for field in table}
        _serializers[id(table)] = type(f"{name_of(table)}Serializer", (serializers.Serializer,), fields)
    return _serializers[id(table)]


def name_of(table: FieldTable) -> str:
    """Return the name of a table in the document."""
    return next(name for name, known in (TABLE_BY_NAME | INSIGHT_TABLES).items() if known is table)


def _field_of(table: FieldTable, reader: Reader) -> serializers.Field:
    if isinstance(reader, ObjectOf):
        return serializer_of(reader.table)(required=False)
    item = reader.item if isinstance(reader, ListOf) else None
    if isinstance(item, ObjectOf):
        return serializer_of(item.table)(many=True, required=False)
    if item is read_step and not any(table is inner for inner in STEP_TABLES):
        return serializer_of(STEP_FIELDS)(many=True, required=False)
    return _serializer_field(schema_of(reader))(required=False)


def _serializer_field(schema: dict[str, Any]) -> type[serializers.Field]:
    return extend_schema_field(schema)(type("Drawn", (serializers.JSONField,), {}))


def schema_of(reader: Reader) -> dict[str, Any]:
    """Return the JSON schema of the values that a reader accepts."""
    if isinstance(reader, IntegerOf):
        return {"type": "integer", "format": f"int{reader.bits}"}
    if isinstance(reader, OrNull):
        return {**schema_of(reader.reader), "nullable": True}
    if isinstance(reader, ChoiceOf):
        # Wrapped, or the drawing would give each enumeration a name of its own and stumble over equal field names.
        return {"anyOf": [{"type": "string", "enum": list(reader.names)}]}
    if isinstance(reader, ListOf):
        return {"type": "array", "items": schema_of(reader.item)}
    if isinstance(reader, MapOf):
        return {"type": "object", "additionalProperties": schema_of(reader.item)}
    if isinstance(reader, ObjectOf):
        return {"type": "object", "properties": {field.name: schema_of(field.read) for field in reader.table}}
    return SCHEMA_BY_READER.get(reader, {"type": "string"})
