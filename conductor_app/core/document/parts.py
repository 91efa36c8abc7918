"""What stands inside a step, however badly its document is written: branches, a body, handlers."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

SPLIT, LOOP, GUARD, GROWS, LEAF = "split", "loop", "guard", "grows", "leaf"
SHAPES = {
    "FORK_JOIN": SPLIT,
    "SWITCH": SPLIT,
    "DECISION": SPLIT,
    "DO_WHILE": LOOP,
    "FOR_EACH": LOOP,
    "TRY_CATCH": GUARD,
    "FORK_JOIN_DYNAMIC": GROWS,
}
BODIES = ("loopOver",)
_ITERATION_LIMIT = re.compile(r"iteration['\"]?\]?\s*<(=?)\s*(\d{1,9})\b")


class NestedSequence(NamedTuple):
    """A sequence of steps inside a step: what it is called, and where it stands in the document."""

    label: str
    path: str
    steps: list[Any]


def type_of(step: Mapping[str, Any]) -> str:
    return str(step.get("type") or "SIMPLE")


def shape_of(step: Mapping[str, Any]) -> str:
    return SHAPES.get(type_of(step), LEAF)


def nested_sequences(step: Mapping[str, Any], path: str) -> list[NestedSequence]:
    """The sequences that stand beside one another inside a step, empty ones included."""
    return [
        NestedSequence(label, f"{path}.{place}", _list(steps)) for label, place, steps in READERS[shape_of(step)](step)
    ]


def _split_sequences(step: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    if type_of(step) == "FORK_JOIN":
        for number, branch in enumerate(_list(step.get("forkTasks"))):
            yield "", f"forkTasks[{number}]", branch
        return
    cases = step.get("decisionCases")
    for case, steps in cases.items() if isinstance(cases, dict) else ():
        yield str(case), f"decisionCases[{case}]", steps
    yield "otherwise", "defaultCase", step.get("defaultCase")


def _loop_sequences(step: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for place in BODIES:
        if step.get(place):
            yield "", place, step[place]


def _try_catch_sequences(step: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    yield "try", "tryTasks", step.get("tryTasks")
    for number, case in enumerate(_list(step.get("catchCases"))):
        steps = case.get("tasks") if isinstance(case, dict) else None
        yield _describe_match(case, number), f"catchCases[{number}].tasks", steps
    if step.get("catchDefault"):
        yield "catch all else", "catchDefault", step["catchDefault"]


def _describe_match(case: Any, number: int) -> str:
    """What a handler waits for, in a few words."""
    match = case.get("match") if isinstance(case, dict) else None
    words = [str(value) for value in match.values() if isinstance(value, str)] if isinstance(match, dict) else []
    return f"catch {' '.join(words)}" if words else f"catch {number + 1}"


def finally_sequence(step: Mapping[str, Any], path: str) -> NestedSequence | None:
    """What a guarded body does in the end, whatever happened."""
    steps = _list(step.get("finallyTasks")) if shape_of(step) == GUARD else []
    return NestedSequence("finally", f"{path}.finallyTasks", steps) if steps else None


READERS = {
    SPLIT: _split_sequences,
    LOOP: _loop_sequences,
    GUARD: _try_catch_sequences,
    GROWS: lambda step: iter(()),
    LEAF: lambda step: iter(()),
}


def max_iterations(step: Mapping[str, Any]) -> int:
    """The turns that a loop's condition allows, where it compares its iteration with a number; else 0."""
    found = _ITERATION_LIMIT.search(str(step.get("loopCondition") or ""))
    return int(found[2]) + bool(found[1]) if found else 0


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
