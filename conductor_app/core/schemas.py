"""Checks of payloads against JSON schemas, and of schemas whose checks would take too long."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from .data_requests import SchemaCheck
from .decision_context import DecisionContext
from .definition import Schema

MAX_LENGTH = 4_000
"""Maximum number of characters of a sentence about all violations."""


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


MAX_VISITS = 10_000
"""The maximum number of subschemas that a check visits, with each reference counted like a copy of its target."""
OTHER_REFERENCES = ("$dynamicRef", "$recursiveRef")
REPEATED = ("unevaluatedProperties", "unevaluatedItems")
"""Keywords for which the subschemas beside them are checked a second time."""


class _Unbounded(Exception):
    """The schema refers to itself, in a way that is not followed here, or too often."""


def is_checked_quickly(schema: Any) -> bool:
    """Return True if the time of a check is bounded by the sizes of the schema and the value.

    References can make it exponential: in the number of references, or in the depth of the value if they are recursive.
    """
    try:
        _Visits(schema).of(schema)
    except (_Unbounded, RecursionError):
        return False
    return True


class _Visits:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._targets: dict[str, int | None] = {}

    def of(self, schema: Any) -> int:
        """Return the number of visits of a schema, or of a part of one."""
        if isinstance(schema, list):
            return _check_limit(sum(map(self.of, schema)))
        if not isinstance(schema, Mapping):
            return 0
        if any(name in schema for name in OTHER_REFERENCES) or ("$id" in schema and schema is not self._root):
            raise _Unbounded
        count = 1 + sum(map(self.of, schema.values()))
        if isinstance(reference := schema.get("$ref"), str):
            count += self._of_target(reference)
        return _check_limit(count * 2 ** sum(name in schema for name in REPEATED))

    def _of_target(self, reference: str) -> int:
        if reference not in self._targets:
            self._targets[reference] = None
            self._targets[reference] = self.of(self._find(reference))
        count = self._targets[reference]
        if count is None:
            raise _Unbounded
        return count

    def _find(self, reference: str) -> Any:
        """Return the target of a reference. An anchor or another document is not followed."""
        found = self._root
        if not reference.startswith("#/"):
            raise _Unbounded
        for part in reference.removeprefix("#/").split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                raise _Unbounded
            found = found[key]
        return found


def _check_limit(count: int) -> int:
    """Return the count if it is within the limit."""
    if count > MAX_VISITS:
        raise _Unbounded
    return count
