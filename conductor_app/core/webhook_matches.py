"""Conditions of WAIT_FOR_WEBHOOK tasks: which webhook payload completes a task.

A condition is a map from JSONPaths to values. A digest of paths and values finds the matching tasks by index, so that
the number of waiting tasks does not matter.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from .expressions.jsonpath import ABSENT, BadPath, compile_path

Paths = tuple[str, ...]


def parse_matches(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the condition in a task's input: its `matches`, or entries whose names begin with `$`.

    The JavaScript SDK writes the entries beside the other inputs.

    Raises:
        ValueError: when `matches` is not an object.
    """
    matches = inputs.get("matches")
    if matches is not None and not isinstance(matches, Mapping):
        raise ValueError("'matches' must be an object that maps JSONPaths of the payload to expected values.")
    return {**{name: value for name, value in inputs.items() if name.startswith("$")}, **(matches or {})}


def path_error(path: str) -> str:
    """Return why this is not a JSONPath into a payload, or "" if it is one."""
    if not path.startswith("$"):
        return "a path must begin with $, such as $['event']['type']"
    try:
        compile_path(path)
    except BadPath as error:
        return str(error)
    return ""


def match_paths(matches: Mapping[str, Any]) -> Paths:
    """Return the paths of a condition in a fixed order."""
    return tuple(sorted(matches))


def match_digest(matches: Mapping[str, Any]) -> str:
    """Return the digest under which a task with this condition is stored."""
    paths = match_paths(matches)
    return _digest(paths, [matches[path] for path in paths])


def payload_digest(payload: Any, paths: Paths) -> str | None:
    """Return the digest of the payload's values at the paths; None if it lacks one of them."""
    found = [compile_path(path).find(payload) for path in paths]
    return None if any(value is ABSENT for value in found) else _digest(paths, found)


def _digest(paths: Paths, values: Sequence[Any]) -> str:
    text = json.dumps([paths, [_comparable(value) for value in values]], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _comparable(value: Any) -> Any:
    """Return the value with whole floats as integers, because 1 and 1.0 are the same number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _comparable(inner) for name, inner in value.items()}
    return [_comparable(inner) for inner in value] if isinstance(value, list) else value
