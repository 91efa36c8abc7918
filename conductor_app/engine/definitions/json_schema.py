"""Validation of payloads by JSON schemas. Remote references are refused, and error messages contain no values."""

import json
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs

from ...core.data_requests import SchemaCheck

MAX_ERRORS = 50
MAX_LENGTH = 300


def check_against_schema(request: SchemaCheck) -> tuple[tuple[str, str], ...]:
    """Return the violations of a schema as pairs of path and message."""
    try:
        errors = list(islice(_validator(request.schema).iter_errors(json.loads(request.value)), MAX_ERRORS))
    except ValueError as fault:
        return (("", f"the schema cannot be used: {_first_error_line(fault)}"),)
    return tuple((_format_path(error.instance_path), error.message[:MAX_LENGTH]) for error in errors)


def schema_error(schema: dict[str, Any]) -> str:
    """Return why a JSON schema cannot be used, or an empty string."""
    try:
        _build_validator(schema)
    except ValueError as fault:
        return _first_error_line(fault)
    return ""


@lru_cache(maxsize=500)
def _validator(schema: str) -> Any:
    return _build_validator(json.loads(schema))


def _build_validator(schema: dict[str, Any]) -> Any:
    return jsonschema_rs.validator_for(
        schema, retriever=_refuse_remote_reference, validate_formats=True, mask="the value"
    )


def _refuse_remote_reference(address: str) -> Any:
    raise ValueError("remote references are not supported; a schema can refer only to itself")


def _format_path(path: list[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[:MAX_LENGTH]


def _first_error_line(fault: ValueError) -> str:
    return str(fault).partition("\n")[0][:MAX_LENGTH]
