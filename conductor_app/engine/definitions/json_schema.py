"""Validation of payloads by JSON schemas. Remote references are refused, and error messages contain no values."""

import json
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs

from ...core.data_requests import SchemaCheck
from ...core.errors import Busy
from ...core.schema_size import is_checked_quickly
from ...scripts import pool

MAX_ERRORS = 50
MAX_LENGTH = 300


def check_against_schema(request: SchemaCheck) -> tuple[tuple[str, str], ...]:
    """Return the violations of a schema as pairs of path and message.

    Raises:
        Busy: when a helper process is needed and none is available.
    """
    try:
        validator = _quick_validator(request.schema)
        if validator is None:
            return _check_in_helper(request)
        errors = list(islice(validator.iter_errors(json.loads(request.value)), MAX_ERRORS))
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
def _quick_validator(schema: str) -> Any:
    """Return the validator of a schema, or None if a check could keep this process busy without end."""
    document = json.loads(schema)
    return _build_validator(document) if is_checked_quickly(document) else None


def _check_in_helper(request: SchemaCheck) -> tuple[tuple[str, str], ...]:
    """Check a value in a helper process, which is ended at the time limit of scripts."""
    value, limit = json.loads(request.value), pool.EVALUATION_SECONDS
    try:
        found = pool.evaluate("json-schema", request.schema, value, limit, key=request.schema)
    except pool.ScriptsUnavailable as busy:
        raise Busy(str(busy)) from busy
    if found.timed_out:
        return (("", f"the schema cannot be used: the check took longer than {limit:g} s"),)
    if found.error:
        return (("", f"the schema cannot be used: {found.error[:MAX_LENGTH]}"),)
    return tuple((_format_path(path), message) for path, message in found.value)


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
