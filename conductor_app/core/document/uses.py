"""The objects that a definition names: secrets, environment values, databases, integrations, prompts, workflows."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..ai_names import named_uses
from ..data_requests import SECRET_TARGET, VARIABLE_TARGET, WORKFLOW_TARGET
from ..expressions import needed_references
from ..expressions.json_walk import expression_texts
from ..step_structure import DEFAULT_TYPE, structure_of, structure_of_step, type_of
from ..step_tree import walk
from .inline_definitions import extract_definitions

SECRET_NAME = re.compile(r"\$\{\s*workflow\.secrets\.([\w-]+)")
VARIABLE_NAME = re.compile(r"\$\{\s*workflow\.env\.([\w-]+)")
VARIABLES = ("workflow", "env")
EVERY_VARIABLE = "*"
"""Stands for all environment values: an expression refers to them without a plain name."""

Use = tuple[str, str]
"""(target type, name)"""


def uses_of(document: Mapping[str, Any]) -> set[Use]:
    """Return the objects that a workflow or task definition names. Names that expressions compute are not among them.

    Inline definitions of sub-workflows are included. Tolerates invalid documents.
    """
    text = json.dumps(document, default=str)
    uses = {(SECRET_TARGET, name) for name in SECRET_NAME.findall(text)}
    uses |= {(VARIABLE_TARGET, name) for name in VARIABLE_NAME.findall(text)}
    if any(_reads_other_variables(each) for each in expression_texts(document)):
        uses.add((VARIABLE_TARGET, EVERY_VARIABLE))
    for definition in (document, *extract_definitions(document)[1].values()):
        uses |= set(_uses_of_steps(definition))
    return uses


def _reads_other_variables(text: str) -> bool:
    """Return True if a text reads environment values in another way than by `${workflow.env.NAME}`."""
    return VARIABLES in needed_references(VARIABLE_NAME.sub("${workflow.input.x", text))


def _uses_of_steps(definition: Mapping[str, Any]) -> Iterator[Use]:
    names: list[Use] = [(WORKFLOW_TARGET, definition.get("failureWorkflow") or "")]
    for spot in walk(definition.get("tasks")):
        names += [(WORKFLOW_TARGET, name) for name in structure_of_step(spot.step).named_workflows(spot.step)]
        inputs = spot.step.get("inputParameters")
        for task_type in _task_types(spot.step, inputs):
            found = {*structure_of(task_type).named_objects(inputs), *named_uses(task_type, inputs)}
            names += [(use.target_type, use.name) for use in found]
    yield from ((target, name) for target, name in names if isinstance(name, str) and name and "$" not in name)


def _task_types(step: Mapping[str, Any], inputs: Any) -> Iterator[str]:
    """Yield the types that decide which worker executes a step: its own, and those that it names in another way."""
    yield (type := type_of(step))
    if type == DEFAULT_TYPE:
        yield str(step.get("name") or "")
    elif isinstance(inputs, Mapping) and isinstance(parameter := step.get("dynamicTaskNameParam"), str):
        yield str(inputs.get(parameter) or "")
