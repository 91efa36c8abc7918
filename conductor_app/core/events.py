"""Events: the names of sinks, the contents of payloads, and the conditions of WAIT_FOR_WEBHOOK tasks.

A condition is a map from JSONPaths to values. A digest of paths and values finds the matching tasks by index, so that
the number of waiting tasks does not matter.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .expressions import MISSING, resolve_template, script_names
from .expressions.jsonpath import compile_path
from .expressions.jsonpath_segments import ABSENT, BadPath
from .snapshot import Run

INTERNAL = "conductor"
"""The provider of events that stay in this server."""
NAMED = re.compile(r"\$(?:\.[A-Za-z_$][\w$]*(?![\w$]|\s*\()|\[\d+\]|\['[^']*'\]|\[\"[^\"]*\"\])+")
STEP = re.compile(r"\.([A-Za-z_$][\w$]*)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
MAX_SEEN = 50
MAX_VALUE_LENGTH = 500


def event_name(sink: str, workflow: str, ref: str) -> str:
    """Return the name of the event for a sink (execution §8.15); events of this server contain the workflow's name."""
    if sink == INTERNAL:
        return f"{INTERNAL}:{workflow}:{ref}"
    if is_internal(sink):
        return f"{INTERNAL}:{workflow}:{sink.partition(':')[2]}"
    return sink


def is_internal(sink: str) -> bool:
    """Return True if the sink is this server."""
    return sink.partition(":")[0] == INTERNAL


def run_event_facts(run: Run) -> dict[str, Any]:
    """Return the fields about the run that every event contains."""
    return {
        "workflowInstanceId": run.id,
        "workflowType": run.definition.name,
        "workflowVersion": run.definition.version,
        "correlationId": run.correlation_id or None,
        "taskToDomain": dict(run.domains),
    }


def expand_json_texts(value: Any) -> Any:
    """Return the value with each text that is JSON parsed, not recursively."""
    if isinstance(value, str):
        return _parse_json(value)
    if isinstance(value, dict):
        return {name: expand_json_texts(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [expand_json_texts(inner) for inner in value]
    return value


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def is_true(value: Any) -> bool:
    """Return True if the result of a condition lets the event pass: true, or a number above zero."""
    return value is True or (isinstance(value, int | float) and value > 0)


def observed_values(condition: str, payload: Any, language: str = "javascript") -> dict[str, Any]:
    """Return the payload values that a condition names, by their path; long values are truncated."""
    if language == "python":
        read = [name for name in script_names(condition) if name in payload] if isinstance(payload, dict) else []
        return {name: _shorten(payload[name]) for name in read[:MAX_SEEN]}
    named = dict.fromkeys(match[0] for match in NAMED.finditer(condition))
    return {place: _shorten(_value_at(place, payload)) for place in list(named)[:MAX_SEEN]}


def _value_at(place: str, value: Any) -> Any:
    for name, index, single, double in STEP.findall(place):
        if index and isinstance(value, list):
            value = value[int(index)] if int(index) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(name or single or double or index)
        else:
            return None
    return value


def _shorten(value: Any) -> Any:
    if isinstance(value, dict | list):
        text = json.dumps(value, default=str)
        return value if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"
    return f"{value[:MAX_VALUE_LENGTH]}…" if isinstance(value, str) and len(value) > MAX_VALUE_LENGTH else value


def resolve_event_template(template: Any, payload: Any, max_bytes: int) -> Any:
    """Return the template with each `${field.path}` replaced by the value in the payload, or null.

    Raises:
        PayloadOverLimit: when more than `max_bytes` would be inserted.
    """
    return resolve_template(template, _payload_scope(payload), max_bytes, "The input of the action")


def _payload_scope(payload: Any) -> Callable[[str, str], Any]:
    fields = payload if isinstance(payload, dict) else {}

    def find(root: str, key: str) -> Any:
        value = fields.get(root)
        if not key:
            return value
        return value.get(key, MISSING) if isinstance(value, dict) else MISSING

    return find


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
