"""The schemas that a definition holds payloads to."""

import json
from collections.abc import Mapping
from typing import Any

from ..definition import Schema


def enforced_schemas(document: Mapping[str, Any], *, by_default: bool) -> dict[str, Schema]:
    """Return the enforced schemas of a definition by part. The resolved definition contains them."""
    asked = document.get("enforceSchema")
    if not (by_default if asked is None else asked):
        return {}
    given = {"input_schema": document.get("inputSchema"), "output_schema": document.get("outputSchema")}
    return {part: schema for part, one in given.items() if isinstance(one, dict) and (schema := _read_schema(one))}


def _read_schema(given: Mapping[str, Any]) -> Schema | None:
    """Return a JSON schema; None for other languages, for external addresses, and for an empty one."""
    if given.get("type") not in (None, "JSON"):
        return None
    name = ", version ".join(str(given[part]) for part in ("name", "version") if given.get(part))
    if isinstance(given.get("data"), dict):
        return Schema(name, json.dumps(given["data"], sort_keys=True))
    return Schema(name, "") if given.get("name") and not given.get("externalRef") else None
