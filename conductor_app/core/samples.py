"""Example values for a JSON schema: its own examples and defaults, otherwise the simplest value of its type."""

from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 8
DEFAULTS_BY_TYPE = {
    "string": "text",
    "number": 1.0,
    "integer": 1,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
FORMATS = {"date": "2027-01-31", "date-time": "2027-01-31T12:00:00Z", "email": "user@example.com"}


def sample_from_schema(schema: Any, depth: int = 0) -> Any:
    """Return an example value; None for a part without a type."""
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return None
    for keyword in ("default", "const"):
        if keyword in schema:
            return schema[keyword]
    for keyword in ("examples", "enum"):
        if isinstance(schema.get(keyword), list) and schema[keyword]:
            return schema[keyword][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if isinstance(schema.get("properties"), Mapping):
        return {str(name): sample_from_schema(part, depth + 1) for name, part in schema["properties"].items()}
    if kind == "array" and "items" in schema:
        return [sample_from_schema(schema["items"], depth + 1)]
    if kind == "string" and schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    if kind in ("integer", "number") and isinstance(schema.get("minimum"), int | float):
        return schema["minimum"]
    return DEFAULTS_BY_TYPE.get(kind) if isinstance(kind, str) else None
