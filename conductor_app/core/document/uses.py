"""The objects that a definition names: secrets, environment values, databases, integrations, prompts, workflows."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..ai_names import named_uses
from ..data_requests import CONNECTION_TARGET, SECRET_TARGET, VARIABLE_TARGET, WORKFLOW_TARGET
from ..step_structure import structure_of_step, type_of
from ..step_tree import walk
from .inline_definitions import extract_definitions

SECRET_NAME = re.compile(r"\$\{\s*workflow\.secrets\.([\w-]+)")
VARIABLE_NAME = re.compile(r"\$\{\s*workflow\.env(?:\.([\w-]+))?")
EVERY_VARIABLE = "*"
"""Stands for all environment values: an expression refers to them without a name."""

Use = tuple[str, str]
"""(target type, name)"""


def uses_of(document: Mapping[str, Any]) -> set[Use]:
    """Return the objects that a workflow or task definition names. Names that expressions compute are not among them.

    Inline definitions of sub-workflows are included. Tolerates invalid documents.
    """
    text = json.dumps(document, default=str)
    uses = {(SECRET_TARGET, name) for name in SECRET_NAME.findall(text)}
    uses |= {(VARIABLE_TARGET, name or EVERY_VARIABLE) for name in VARIABLE_NAME.findall(text)}
    for definition in (document, *extract_definitions(document)[1].values()):
        uses |= set(_uses_of_steps(definition))
    return uses


def _uses_of_steps(definition: Mapping[str, Any]) -> Iterator[Use]:
    names: list[Use] = [(WORKFLOW_TARGET, definition.get("failureWorkflow") or "")]
    for spot in walk(definition.get("tasks")):
        structure = structure_of_step(spot.step)
        names += [(WORKFLOW_TARGET, name) for name in structure.named_workflows(spot.step)]
        names += [(CONNECTION_TARGET, name) for name in structure.named_connections(spot.step)]
        found = named_uses(type_of(spot.step), spot.step.get("inputParameters"))
        names += [(use.target_type, use.name) for use in found]
    yield from ((target, name) for target, name in names if isinstance(name, str) and name and "$" not in name)
