"""Workflow definitions that are written inside another document, at `subWorkflowParam.workflowDefinition`.

The expressions in such a definition belong to the child run. Whatever resolves or checks the parent's expressions
takes the definitions out first.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..step_structure import Flow, structure_of_step

PARAM, DEFINITION = "subWorkflowParam", "workflowDefinition"
Path = tuple[Any, ...]


def extract_definitions(value: Any) -> tuple[Any, dict[Path, dict[str, Any]]]:
    """Return the value with null in place of each inline definition, and the definitions by their paths.

    The value itself stays as it is. A definition inside another one is part of that one.
    """
    definitions = dict(_find_definitions(value))
    if not definitions:
        return value, {}
    without = value
    for path in definitions:
        without = _replace_at(without, path, None)
    return without, definitions


def restore_definitions(value: Any, definitions: Mapping[Path, dict[str, Any]]) -> Any:
    """Return the value with the definitions that `extract_definitions` has removed."""
    for path, definition in definitions.items():
        value = _replace_at(value, path, definition)
    return value


def inputs_without_definitions(step: Mapping[str, Any]) -> Any:
    """Return the step's `inputParameters` without the definitions whose expressions belong to a child run.

    Only a dynamic fork makes steps of its inputs; in the inputs of other steps a definition is data like any other.
    """
    inputs = step.get("inputParameters")
    makes_steps = structure_of_step(step).flow is Flow.DYNAMIC_FORK
    return extract_definitions(inputs)[0] if makes_steps else inputs


def param_without_definition(step: Mapping[str, Any]) -> Any:
    """Return the step's `subWorkflowParam` without a definition given in place."""
    return extract_definitions({PARAM: step.get(PARAM)})[0][PARAM]


def _find_definitions(value: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    pending: list[tuple[Path, Any]] = [((), value)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, dict):
            if path[-1:] == (PARAM,) and isinstance(item.get(DEFINITION), dict):
                yield (*path, DEFINITION), item[DEFINITION]
                item = {key: inner for key, inner in item.items() if key != DEFINITION}
            pending.extend(((*path, key), inner) for key, inner in item.items() if isinstance(inner, dict | list))
        elif isinstance(item, list):
            indexed = enumerate(item)
            pending.extend(((*path, index), inner) for index, inner in indexed if isinstance(inner, dict | list))


def _replace_at(value: Any, path: Path, item: Any) -> Any:
    """Return a copy of the value, as deep as the path, with the item at the path."""
    if not path:
        return item
    copied = value.copy()
    copied[path[0]] = _replace_at(value[path[0]], path[1:], item)
    return copied
