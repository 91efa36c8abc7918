"""Read documents by a table of their fields: name, type, default.

A field with a default is always present, others only if they have a value; unknown fields are kept.
"""

from typing import Any, NamedTuple

from .values import DocumentPosition, Reader, read_at, read_mapping


class FieldSpec(NamedTuple):
    """A field. `default`: a value, or `dict` or `list` for an empty one; None for no default."""

    name: str
    read: Reader
    default: Any = None


FieldTable = tuple[FieldSpec, ...]


def read_document(document: dict[str, Any], table: FieldTable, place: DocumentPosition) -> dict[str, Any]:
    """Return the document with every field of the table converted or set to its default. Other fields are kept."""
    if not place.fills:
        return document | {
            name: read_at(place.at(name), read, document[name]) for name, read, _ in table if name in document
        }
    result = {name: value for name, value in document.items() if value is not None}
    for name, reader, default in table:
        value = read_at(place.at(name), reader, result[name]) if name in result else None
        if value is None and default is not None:
            value = default() if isinstance(default, type) else default
        if value is None:
            result.pop(name, None)
        else:
            result[name] = value
    return result


class ObjectOf:
    """Reads an object with the fields of a table."""

    def __init__(self, table: FieldTable) -> None:
        self.table = table

    def __call__(self, value: Any, place: DocumentPosition) -> dict[str, Any]:
        return read_document(read_mapping(value, place), self.table, place)
