"""Runs that a step starts: which definition, priority and domains they get."""

import json
from collections.abc import Mapping
from typing import Any

from ..data_requests import InlineDefinition
from ..decision_context import DecisionContext
from ..definition import Definition
from ..errors import StepRefused
from ..schema_check import schema_violation


def definition_of(param: Mapping[str, Any], ctx: DecisionContext) -> Definition:
    """The definition of the child: written in place, or found by name and version."""
    written = param.get("workflowDefinition")
    if isinstance(written, dict):
        found = ctx.require(InlineDefinition(json.dumps(written, sort_keys=True)))
        if isinstance(found, str):
            raise StepRefused(f"The workflow definition given in place is refused: {found}")
        return found
    name, version = param.get("name"), version_of(param.get("version"))
    if not isinstance(name, str) or not name:
        raise StepRefused(f"subWorkflowParam names no workflow; its name is {name!r}.")
    found = ctx.definition(name, version)
    if found is None:
        raise StepRefused(f"No such workflow definition: {name}, version {version or 'latest'}.")
    return found


def validate_child_input(definition: Definition, given: dict[str, Any], ctx: DecisionContext) -> dict[str, Any]:
    """The child's input; raises StepRefused where it does not fit the child's schema."""
    if reason := schema_violation(definition.input_schema, given, "input", ctx):
        raise StepRefused(f"{definition.name} cannot be started: {reason}")
    return given


def version_of(value: Any) -> int | None:
    """A version as a number; None stands for the newest."""
    try:
        return int(value) if value not in (None, "") else None
    except (TypeError, ValueError):
        raise StepRefused(f"The version of a workflow must be a whole number; it is {value!r}.") from None


def priority_of(value: Any, parents: int) -> int:
    """The child's priority, from 0 to 99; the parent's where none is given."""
    try:
        return min(max(int(value), 0), 99)
    except (TypeError, ValueError):
        return parents


def domains_of(param: Mapping[str, Any], ctx: DecisionContext) -> dict[str, str]:
    """The child's map from task type to domain: its own, else the parent's."""
    own = param.get("taskToDomain")
    return dict(own) if isinstance(own, dict) and own else dict(ctx.run.domains)
