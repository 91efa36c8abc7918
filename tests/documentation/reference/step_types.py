"""The facts about each step type that its class declares."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from conductor_app.core.step_types import STEP_TYPES
from conductor_app.core.step_types.base import StepType

from .tables import code, table

PREFIX = "step-"
INTERNAL = frozenset(structure.item_type for structure in STEP_TYPES.values() if structure.item_type)
"""Types of steps that the engine adds, which no definition may have."""


def documented_types() -> list[str]:
    """Return the types that a definition may have."""
    return [name for name in STEP_TYPES if name not in INTERNAL]


def write_summary() -> str:
    """Return a table of what completes the tasks of each type."""
    types: dict[str, list[str]] = {}
    for name in documented_types():
        types.setdefault(_executor(STEP_TYPES[name]), []).append(f"[{name}](#{name.lower()})")
    not_retried = [name for name in documented_types() if not STEP_TYPES[name].is_retried]
    rows = [(executor, ", ".join(names)) for executor, names in types.items()]
    return f"{table(('completed by', 'types'), rows)}\n{_codes(not_retried)} are not retried."


def writer_of(block: str) -> Callable[[str], str]:
    """Return the writer of a block such as `step-WAIT`.

    Raises:
        KeyError: when no type has this name.
    """
    step_type = STEP_TYPES[block.removeprefix(PREFIX)]
    return lambda _: " ".join(_facts(step_type))


def _facts(step_type: StepType) -> Iterator[str]:
    empty = {"type": step_type.type, "name": "", "inputParameters": {}, "optional": False}
    required = [found for found in step_type.check(empty, {}) if " " not in found]
    if required:
        yield f"Requires {_codes(required)}."
    if step_type.fields:
        yield f"Fields of its own: {_codes(field.name for field in step_type.fields)}."
    if step_type.script_field:
        languages = "JavaScript or Python" if step_type.allows_python else "JavaScript"
        yield f"Script: {code(step_type.script_field)}, in {languages}."
    if step_type.output_members:
        yield f"Output: {_codes(_members(step_type.output_members))}."


def _codes(names: Iterable[str]) -> str:
    return ", ".join(map(code, names))


def _executor(step_type: StepType) -> str:
    if step_type.is_built_in:
        return (
            "a built-in worker, of its isolation group if it has one" if step_type.is_isolated else "a built-in worker"
        )
    if step_type.is_queued:
        return "a worker that polls for its name" if step_type.result_comes_from_outside else "a built-in worker"
    if step_type.is_completed_externally:
        return "a report, a time, a person or another run"
    return "the tasks inside it or before it" if step_type.waits_for_tasks else "the engine, at once"


def _members(members: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, inner in members.items():
        if inner:
            yield from _members(inner, f"{prefix}{name}.")
        else:
            yield prefix + name
