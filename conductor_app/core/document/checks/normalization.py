"""Definitions as they are shown: every field as its type, defaults filled in, unknown fields kept."""

from typing import Any

from ...errors import ValidationError
from .document_fields import ObjectOf
from .field_specs import TASK_DEFINITION, WORKFLOW_DEFINITION, read_step
from .values import DocumentPosition, Reader, read_at


def normalize_workflow(document: Any, place: DocumentPosition | None = None) -> dict[str, Any]:
    """A workflow definition; what cannot be read is left out, and complained of at `place`."""
    return _normalize(ObjectOf(WORKFLOW_DEFINITION), document, place)


def normalize_task(document: Any, place: DocumentPosition | None = None) -> dict[str, Any]:
    """A task definition; what cannot be read is left out, and complained of at `place`."""
    return _normalize(ObjectOf(TASK_DEFINITION), document, place)


def coerce_workflow(document: Any) -> Any:
    """A workflow definition as it was given, every known field as its type; what cannot be read stays as it is."""
    return read_at(DocumentPosition(fills=False), ObjectOf(WORKFLOW_DEFINITION), document)


def coerce_task(document: Any) -> Any:
    """A task definition as it was given, every known field as its type; what cannot be read stays as it is."""
    return read_at(DocumentPosition(fills=False), ObjectOf(TASK_DEFINITION), document)


def coerce_step(document: Any) -> tuple[Any, list[ValidationError]]:
    """A step made on the way, as it was given, every known field as its type; and what cannot be read of it."""
    place = DocumentPosition(fills=False)
    return read_at(place, read_step, document), place.complaints


def normalize_step(document: Any) -> dict[str, Any]:
    """A step with the steps inside it."""
    return _normalize(read_step, document, None)


def _normalize(reader: Reader, document: Any, place: DocumentPosition | None) -> dict[str, Any]:
    place = place or DocumentPosition()
    read = read_at(place, reader, document)
    if document is None:
        place.add_error("The document must be an object")
    return read if isinstance(read, dict) else {}
