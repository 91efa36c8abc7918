"""Differences between two versions of a definition by meaning, as sentences."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..definition import StepSpot, structure_of_step, walk
from ..primitives import JsonValue

ADDED, REMOVED, CHANGED, MOVED = "added", "removed", "changed", "moved"
QUIET = frozenset(("createTime", "updateTime", "createdBy", "updatedBy", "version", "ownerApp"))
"""Fields that the server fills in, or that every version changes."""
HOLDS_STEPS = frozenset(
    ("tasks", "forkTasks", "decisionCases", "defaultCase", "loopOver", "tryTasks", "catchCases", "catchDefault")
) | {"finallyTasks"}
MAX_LENGTH = 80

WORDS = {
    "retryCount": "retries",
    "retryDelaySeconds": "seconds between retries",
    "retryLogic": "way of delaying retries",
    "timeoutSeconds": "time limit in seconds",
    "responseTimeoutSeconds": "seconds for the worker to answer",
    "pollTimeoutSeconds": "seconds to be taken from the queue",
    "totalTimeoutSeconds": "seconds for all attempts together",
    "timeoutPolicy": "the timeout policy",
    "concurrentExecLimit": "tasks at a time",
    "rateLimitPerFrequency": "tasks in each window",
    "rateLimitFrequencyInSeconds": "seconds of each window",
    "name": "task",
    "type": "type",
    "optional": "optional",
    "ownerEmail": "owner",
    "failureWorkflow": "failure workflow",
    "inputParameters": "input",
    "outputParameters": "output",
    "subWorkflowParam": "sub-workflow",
    "joinOn": "the tasks that it joins",
    "startDelay": "seconds of delay at its start",
    "expression": "expression",
    "loopCondition": "loop condition",
}


@dataclass(frozen=True, slots=True)
class SemanticChange:
    """A difference: its kind, its sentence, and the step that it concerns, if any."""

    kind: str
    sentence: str
    ref: str = ""


def semantic_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[SemanticChange]:
    """Return all differences in meaning. Formatting and the order of keys do not count."""
    before, after = _spots_by_reference(old), _spots_by_reference(new)
    refs_by_path = {spot.path: spot.ref for spot in walk(new.get("tasks"))}
    return [
        *_field_changes(old, new, HOLDS_STEPS, ""),
        *(
            SemanticChange(REMOVED, f"step `{ref}` removed: {_step_type_words(spot)}", ref)
            for ref, spot in before.items()
            if ref not in after
        ),
        *(_added_step(spot, refs_by_path) for ref, spot in after.items() if ref not in before),
        *_moved_steps(before, after),
        *(
            change
            for ref, spot in after.items()
            if ref in before
            for change in _field_changes(before[ref].step, spot.step, HOLDS_STEPS, ref)
        ),
    ]


def _spots_by_reference(document: Mapping[str, Any]) -> dict[str, StepSpot]:
    return {spot.ref: spot for spot in walk(document.get("tasks")) if spot.ref}


def _added_step(spot: StepSpot, refs_by_path: Mapping[str, str]) -> SemanticChange:
    return SemanticChange(
        ADDED, f"step `{spot.ref}` added: {_step_type_words(spot)}{_describe_position(spot, refs_by_path)}", spot.ref
    )


def _step_type_words(spot: StepSpot) -> str:
    label = structure_of_step(spot.step).label
    return f"{label} `{spot.name}`" if spot.name and spot.name != spot.ref else label


def _describe_position(spot: StepSpot, refs_by_path: Mapping[str, str]) -> str:
    if spot.follows is not None:
        return f", after `{spot.follows.get('taskReferenceName')}`"
    around = _enclosing_reference(spot, refs_by_path)
    return f", first in `{around}`" if around else ", first of all"


def _enclosing_reference(spot: StepSpot, refs_by_path: Mapping[str, str]) -> str:
    path = spot.path
    while path:
        path = path.rpartition(".")[0]
        if path in refs_by_path:
            return refs_by_path[path]
    return ""


def _moved_steps(before: Mapping[str, StepSpot], after: Mapping[str, StepSpot]) -> Iterator[SemanticChange]:
    """Yield the steps that have other neighbors than before, ignoring added and removed steps."""
    stay = [ref for ref in after if ref in before]
    old_order = {ref: place for place, ref in enumerate(ref for ref in before if ref in after)}
    settled = set(_longest_increasing([old_order[ref] for ref in stay]))
    for ref in stay:
        one, other = _sequence_path_of(before[ref]), _sequence_path_of(after[ref])
        if one != other:
            where = f"another place: {other}" if other else "the main sequence"
            yield SemanticChange(MOVED, f"step `{ref}` moved to {where}", ref)
        elif old_order[ref] not in settled:
            follows = after[ref].follows
            where = f"after `{follows.get('taskReferenceName')}`" if follows else "to the front"
            yield SemanticChange(MOVED, f"step `{ref}` moved {where}", ref)


def _sequence_path_of(spot: StepSpot) -> str:
    """Return the path of the list of steps that contains the step, without the indexes of enclosing steps."""
    return ".".join(part.partition("[")[0] + _case_words(part) for part in spot.path.split(".")[1:])


def _case_words(part: str) -> str:
    return f"[{part.partition('[')[2].rpartition(']')[0].split('][')[0]}]" if part.startswith("decisionCases") else ""


def _longest_increasing(numbers: Sequence[int]) -> list[int]:
    """Return the longest increasing subsequence. Numbers outside of it have been moved."""
    tails: list[int] = []
    links: list[tuple[int, int]] = []  # (place in tails, index of the one before)
    ends: list[int] = []
    for index, number in enumerate(numbers):
        low, high = 0, len(tails)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if tails[middle] < number else (low, middle)
        tails[low:], kept = [number, *tails[low + 1 :]], ends[low - 1] if low else -1
        ends[low:] = [index, *ends[low + 1 :]]
        links.append((low, kept))
    found, index = [], ends[-1] if ends else -1
    while index >= 0:
        found.append(numbers[index])
        index = links[index][1]
    return found[::-1]


def _field_changes(
    old: Mapping[str, Any], new: Mapping[str, Any], without: frozenset[str], ref: str
) -> Iterator[SemanticChange]:
    """Yield the fields in which two maps differ."""
    for name in dict.fromkeys([*old, *new]):
        if name in without or (not ref and name in QUIET):
            continue
        yield from _field_change(name, old.get(name), new.get(name), ref, deep=name in NESTED_FIELDS)


NESTED_FIELDS = frozenset(
    ("inputParameters", "outputParameters", "inputTemplate", "taskDefinition", "subWorkflowParam")
)


def _field_change(name: str, old: Any, new: Any, ref: str, *, deep: bool) -> Iterator[SemanticChange]:
    if old == new or {_is_empty(old), _is_empty(new)} == {True}:
        return
    if deep and isinstance(old or {}, Mapping) and isinstance(new or {}, Mapping):
        old, new = old or {}, new or {}
        for key in dict.fromkeys([*old, *new]):
            if old.get(key) != new.get(key):
                yield _describe_change(
                    f"{_word(name)} `{key}`", old.get(key), new.get(key), ref, key in old, key in new
                )
        return
    yield _describe_change(_word(name), old, new, ref, not _is_empty(old), not _is_empty(new))


def _describe_change(what: str, old: JsonValue, new: JsonValue, ref: str, was: bool, is_: bool) -> SemanticChange:
    of = f"`{ref}`: " if ref else ""
    if not was:
        return SemanticChange(CHANGED, f"{of}{what} set to {_format_value(new)}", ref)
    if not is_:
        return SemanticChange(CHANGED, f"{of}{what} removed, was {_format_value(old)}", ref)
    return SemanticChange(CHANGED, f"{of}{what} {_format_value(old)} to {_format_value(new)}", ref)


def _word(name: str) -> str:
    return WORDS.get(name, name)


def _is_empty(value: JsonValue) -> bool:
    return value is None or value == "" or value == [] or value == {}


def _format_value(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = f"`{text}`" if isinstance(value, str) else text
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…{'`' if text.startswith('`') else ''}"
