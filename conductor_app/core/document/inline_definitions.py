"""Workflow definitions that are written inside another document, at `subWorkflowParam.workflowDefinition`.

The expressions in such a definition belong to the child run. Whatever resolves or checks the parent's expressions
takes the definitions out first.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..expressions.json_walk import expression_texts
from ..step_structure import Flow, structure_of_step, type_of

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


def definitions_in(step: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the definitions that a step writes in place, with their places: of its child, or of its branches' children.

    The expressions in the request of a START_WORKFLOW are those of the parent, so a request with some is data.
    """
    param, inputs = step.get(PARAM), step.get("inputParameters")
    if isinstance(param, Mapping) and isinstance(param.get(DEFINITION), dict):
        yield f"{PARAM}.{DEFINITION}", param[DEFINITION]
    request = inputs.get("startWorkflow") if isinstance(inputs, Mapping) and type_of(step) == "START_WORKFLOW" else None
    written = request.get("workflowDef") if isinstance(request, Mapping) else None
    if isinstance(written, dict) and not any(expression_texts(written)):
        yield "inputParameters.startWorkflow.workflowDef", written
    if structure_of_step(step).flow is Flow.DYNAMIC_FORK:
        for path, found in extract_definitions(inputs)[1].items():
            yield "".join(["inputParameters", *(f"[{key}]" if type(key) is int else f".{key}" for key in path)]), found


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
