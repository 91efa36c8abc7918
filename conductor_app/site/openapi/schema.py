"""Describe the views to drf-spectacular by the operations that they declare, with field tables as serializers."""

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema_field
from rest_framework import serializers

from ...core.document.fields import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    STEP_FIELDS,
    ChoiceOf,
    FieldTable,
    IntegerOf,
    ListOf,
    MapOf,
    ObjectOf,
    OrNull,
    Reader,
    read_any,
    read_boolean,
    read_mapping,
    read_number,
    read_step,
    read_sub_workflow,
    read_weight,
    read_weight_or_expression,
)
from ...core.step_types.try_catch import CATCH_CASE
from ...web.api.documents import ERROR, read_tag_value
from ...web.api.operations import BINARY, EMPTY_REPLY, HEADER, NO_CONTENT, PLAIN_TEXT, ArrayOf, ArraysByKey

STEP_REFERENCE = {"$ref": "#/components/schemas/WorkflowTask"}
SCHEMA_BY_READER: dict[Reader, dict[str, Any]] = {
    read_step: STEP_REFERENCE,
    read_any: {},
    read_boolean: {"type": "boolean"},
    read_mapping: {"type": "object", "additionalProperties": {}},
    read_number: {"type": "number"},
    read_weight: {"type": "number", "minimum": LEAST_WEIGHT, "maximum": MOST_WEIGHT},
    read_weight_or_expression: {"anyOf": [{"type": "number"}, {"type": "string"}]},
    read_sub_workflow: {"anyOf": [{"$ref": "#/components/schemas/WorkflowDef"}, {"type": "string"}]},
    read_tag_value: {"anyOf": [{"type": "string"}, {"type": "integer", "format": "int32"}]},
}
STEP_TABLES = (STEP_FIELDS, CATCH_CASE)
"""Tables that steps are made of: they name a step, since they cannot hold the whole of one."""
_serializers: dict[str, type[serializers.Serializer]] = {}


def serializer_of(table: Any) -> type[serializers.Serializer]:
    """Return the serializer of a named table, always the same object."""
    if table.name not in _serializers:
        fields = {field.name: _field_of(table, field.read) for field in table}
        _serializers[table.name] = type(f"{table.name}Serializer", (serializers.Serializer,), fields)
    return _serializers[table.name]


def _field_of(table: FieldTable, reader: Reader) -> serializers.Field:
    if isinstance(reader, ObjectOf):
        return serializer_of(reader.table)(required=False)
    item = reader.item if isinstance(reader, ListOf) else None
    if isinstance(item, ObjectOf):
        return serializer_of(item.table)(many=True, required=False)
    if item is read_step and not any(table is inner for inner in STEP_TABLES):
        return serializer_of(STEP_FIELDS)(many=True, required=False)
    return extend_schema_field(schema_of(reader))(type("Drawn", (serializers.JSONField,), {}))(required=False)


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


ERROR_DESCRIPTIONS = {
    400: "The request cannot be understood, or the document in it is faulty.",
    401: "A token is missing, not valid, or expired.",
    403: "The caller may not do this.",
    404: "There is no such thing.",
    405: "The address knows no such method.",
    409: "The state of things forbids it.",
    413: "The request, or what it would store, is too large.",
    415: "The content type of the request is not supported.",
    429: "The caller has used its quota, or a queue is full. `Retry-After` says when to send the request again.",
    500: "The server failed; its log says why.",
    503: "The server or its database is busy. Send the request again.",
}
NO_LOGIN = "none; the address requires no token"


FINDINGS_HEADER = OpenApiParameter(
    HEADER,
    str,
    OpenApiParameter.HEADER,
    description="JSON: `count`, and in `findings` as many findings on the request as fit into 2,000 bytes.",
    response=[200],
)


class ConductorSchema(AutoSchema):
    """One operation of the dialect."""

    @property
    def operation(self) -> Any:
        return type(self.view).operation(self.method.lower())

    def get_operation_id(self) -> str:
        name = type(self.view).__name__
        return f"{self.method.lower()}{name}"

    def get_tags(self) -> list[str]:
        return [self.path.removeprefix("/api/").split("/")[0]]

    def get_summary(self) -> str:
        return self.operation.summary

    def get_description(self) -> str:
        return type(self.view).__doc__ or ""

    def get_auth(self) -> list[dict[str, Any]]:
        return []

    def get_extensions(self) -> dict[str, Any]:
        """Return what OpenAPI has no field for: the required permission, and when the reply has no body."""
        is_public = type(self.view).needs_login is False
        permission = {"x-permission": NO_LOGIN if is_public else self.operation.permission.describe()}
        return permission | ({"x-empty-when": self.operation.empty_when} if self.operation.empty_when else {})

    def get_override_parameters(self) -> list[Any]:
        queries = [
            OpenApiParameter(name.rstrip("!"), kind, OpenApiParameter.QUERY, required=name.endswith("!"))
            for name, kind in self.operation.query.items()
        ]
        return [*queries, FINDINGS_HEADER] if self.operation.reports_findings else queries

    def get_request_serializer(self) -> Any:
        body = self.operation.body
        shape = None if body is None else to_spectacular(body)
        return {"application/json": shape} if isinstance(shape, dict) else shape

    def map_parsers(self) -> list[str]:
        return [content_type(self.operation.body)]

    def get_response_serializers(self) -> Any:
        return {**success_replies(self.operation), **error_replies()}


def success_replies(operation: Any) -> dict[Any, Any]:
    """Return the success responses by status and type."""
    nothing = {204: OpenApiResponse(description="Empty response.")}
    if operation.reply == NO_CONTENT:
        return nothing
    if operation.reply == EMPTY_REPLY:
        return {200: OpenApiResponse(description="Done.")}
    shapes = [shape for shape in (operation.reply, operation.other_reply) if shape is not None]
    reply = {(operation.status, content_type(shape)): to_spectacular(shape) for shape in shapes}
    return reply | (nothing if operation.can_be_empty else {})


def content_type(shape: Any) -> str:
    """Return the content type of a request or a response."""
    if shape == PLAIN_TEXT:
        return "text/plain"
    return "*/*" if shape == BINARY else "application/json"


def error_replies() -> dict[Any, Any]:
    """Return the error responses that every operation may have."""
    return {
        (status, "application/json"): OpenApiResponse(serializer_of(ERROR), description)
        for status, description in ERROR_DESCRIPTIONS.items()
    }


def to_spectacular(shape: Any) -> Any:
    """Return a shape in the form that drf-spectacular expects."""
    if shape == PLAIN_TEXT:
        return OpenApiTypes.STR
    if shape == BINARY:
        return OpenApiTypes.BINARY
    if isinstance(shape, ArrayOf):
        return serializer_of(shape.table)(many=True)
    if isinstance(shape, ArraysByKey):
        reference = {"$ref": f"#/components/schemas/{shape.table.name}"}
        return {"type": "object", "additionalProperties": {"type": "array", "items": reference}}
    return serializer_of(shape) if isinstance(shape, tuple) else schema_of(shape)
