"""Check payloads against their schemas and report all violations in one sentence."""

import json
from collections.abc import Iterable
from typing import Any

from .data_requests import SchemaCheck
from .decision_context import DecisionContext
from .definition import Schema

MAX_LENGTH = 4_000
"""Maximum number of characters of such a sentence."""


def schema_question(schema: Schema, value: Any) -> SchemaCheck:
    """Return the request to check a value."""
    return SchemaCheck(schema.text, json.dumps(value, default=str))


def schema_violation(schema: Schema | None, value: Any, what: str, ctx: DecisionContext) -> str:
    """Return why the value violates its schema, or "" if it is valid.

    `what`: the prefix of the paths in the sentence.
    """
    if schema is None:
        return ""
    if not schema.text:
        return f"{what} cannot be checked: schema {schema.name} does not exist."
    found = ctx.require(schema_question(schema, value))
    return violation_sentence(found, schema, what) if found else ""


def violation_sentence(found: Iterable[tuple[str, str]], schema: Schema, what: str) -> str:
    """Return all violations as one sentence."""
    validation_errors = "; ".join(f"{what}{place}: {message}" for place, message in found)
    return f"{what} does not match the schema {schema.name or 'of its definition'}: {validation_errors}"[:MAX_LENGTH]
