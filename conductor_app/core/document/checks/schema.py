"""Validation of schemas at registration (api §2.1)."""

from typing import Any

from ...errors import ValidationError
from .document_fields import read_document
from .field_specs import SCHEMA
from .values import DocumentPosition

MAX_NAME_LENGTH = 255


def read_schema(document: dict[str, Any]) -> tuple[dict[str, Any], list[ValidationError]]:
    """Return the schema with converted fields, and the validation errors except those of the JSON schema itself."""
    place = DocumentPosition()
    read = read_document(document, SCHEMA, place)
    name = read.get("name") or ""
    if not name.strip():
        place.at("name").add_missing("Schema name cannot be null or empty", document.get("name"))
    elif len(name) > MAX_NAME_LENGTH:
        place.at("name").add_error(f"must have at most {MAX_NAME_LENGTH} characters", name)
    if not read.get("type"):
        place.at("type").add_missing("Schema type cannot be null: JSON, AVRO or PROTOBUF")
    check_version(read, place)
    return read, place.validation_errors


def check_version(read: dict[str, Any], place: DocumentPosition) -> None:
    """Check that a version is at least 1."""
    if read["version"] < 1:
        place.at("version").add_error("must be greater than or equal to 1", read["version"])
