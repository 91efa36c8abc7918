"""Payloads and the schemas that they are held to: what does not fit is said in one sentence."""

import json
from collections.abc import Iterable
from typing import Any

from .data_requests import SchemaCheck
from .decision_context import DecisionContext
from .definition import Schema

LONGEST = 4_000
"""Characters of a sentence about what does not fit."""


def schema_question(schema: Schema, value: Any) -> SchemaCheck:
    """What is asked about a value."""
    return SchemaCheck(schema.text, json.dumps(value, default=str))


def schema_violation(schema: Schema | None, value: Any, what: str, ctx: DecisionContext) -> str:
    """Why the value does not fit its schema; nothing if it does. `what`: how a place in it begins."""
    if schema is None:
        return ""
    if not schema.text:
        return f"{what} cannot be checked: there is no schema {schema.name}."
    found = ctx.require(schema_question(schema, value))
    return violation_sentence(found, schema, what) if found else ""


def violation_sentence(found: Iterable[tuple[str, str]], schema: Schema, what: str) -> str:
    """Everything that does not fit, as a person reads it."""
    complaints = "; ".join(f"{what}{place}: {message}" for place, message in found)
    return f"{what} does not fit the schema {schema.name or 'of its definition'}: {complaints}"[:LONGEST]
