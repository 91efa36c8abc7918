"""Payloads held against JSON schemas. Nothing is fetched on a schema's behalf, and no complaint shows a value."""

import json
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs

from ..core.data_requests import SchemaCheck

MOST_COMPLAINTS = 50
LONGEST = 300


def judge(question: SchemaCheck) -> tuple[tuple[str, str], ...]:
    """Everything in which the value is not as the schema wants it: pairs of place and sentence."""
    try:
        errors = list(islice(_validator(question.schema).iter_errors(json.loads(question.value)), MOST_COMPLAINTS))
    except ValueError as fault:
        return (("", f"the schema cannot be used: {_first_line(fault)}"),)
    return tuple((_place(error.instance_path), error.message[:LONGEST]) for error in errors)


def fault_of(schema: dict[str, Any]) -> str:
    """Why this is no JSON schema that can be used here; nothing if it is one."""
    try:
        _made(schema)
    except ValueError as fault:
        return _first_line(fault)
    return ""


@lru_cache(maxsize=500)
def _validator(schema: str) -> Any:
    return _made(json.loads(schema))


def _made(schema: dict[str, Any]) -> Any:
    return jsonschema_rs.validator_for(schema, retriever=_refuse, validate_formats=True, mask="the value")


def _refuse(address: str) -> Any:
    raise ValueError("a schema may refer to parts of itself only")


def _place(path: list[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[:LONGEST]


def _first_line(fault: ValueError) -> str:
    return str(fault).partition("\n")[0][:LONGEST]
