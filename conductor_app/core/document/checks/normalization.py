"""Definitions as the API returns them: converted fields, defaults, unknown fields kept."""

from typing import Any

from ...errors import ValidationError
from .document_fields import ObjectOf
from .field_specs import TASK_DEFINITION, WORKFLOW_DEFINITION, read_step
from .values import DocumentPosition, Reader, read_at


def normalize_workflow(document: Any, place: DocumentPosition | None = None) -> dict[str, Any]:
    """Return a normalized workflow definition. Invalid values are omitted and reported at `place`."""
    return _normalize(ObjectOf(WORKFLOW_DEFINITION), document, place)


def normalize_task(document: Any, place: DocumentPosition | None = None) -> dict[str, Any]:
    """Return a normalized task definition. Invalid values are omitted and reported at `place`."""
    return _normalize(ObjectOf(TASK_DEFINITION), document, place)


def coerce_workflow(document: Any) -> Any:
    """Return a workflow definition without defaults and with known fields converted. Invalid values stay."""
    return read_at(DocumentPosition(fills=False), ObjectOf(WORKFLOW_DEFINITION), document)


def coerce_task(document: Any) -> Any:
    """Return a task definition without defaults and with known fields converted. Invalid values stay."""
    return read_at(DocumentPosition(fills=False), ObjectOf(TASK_DEFINITION), document)


def coerce_step(document: Any) -> tuple[Any, list[ValidationError]]:
    """Return a dynamically created step with known fields converted, and its validation errors."""
    place = DocumentPosition(fills=False)
    return read_at(place, read_step, document), place.validation_errors


def normalize_step(document: Any) -> dict[str, Any]:
    """Return a normalized step with its nested steps."""
    return _normalize(read_step, document, None)


def _normalize(reader: Reader, document: Any, place: DocumentPosition | None) -> dict[str, Any]:
    place = place or DocumentPosition()
    read = read_at(place, reader, document)
    if document is None:
        place.add_error("The document must be an object")
    return read if isinstance(read, dict) else {}
