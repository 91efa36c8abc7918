"""Definition, priority and domains of the runs that a step starts."""

import json
from collections.abc import Mapping
from typing import Any

from ..data_requests import WORKFLOW_TARGET, InlineDefinition
from ..decision_context import DecisionContext
from ..definition import Definition
from ..errors import StepRefused
from ..expressions import field_text, quote_value
from ..schema_check import schema_violation
from .field_checks import whole_number


def definition_of(
    param: Mapping[str, Any],
    ctx: DecisionContext,
    allowed_secrets: frozenset[str] | None,
    *,
    written_name: Any,
    field: str = "subWorkflowParam",
) -> Definition:
    """Return the definition of the child: inline, or found by name and version.

    `allowed_secrets`: the secrets that an inline definition may name; None for those of the author of the parent.
    `written_name`: the name as the author of the step has written it, None if the step came from data. `field`: the
    field of the step that contains `param`, for messages.

    Raises:
        StepRefused: when the inline definition is invalid, there is no such definition, or its name comes from data and
            the starter of the run may not start it.
    """
    written = param.get("workflowDefinition")
    if isinstance(written, dict):
        found = ctx.require(InlineDefinition(json.dumps(written, sort_keys=True), allowed_secrets))
        if isinstance(found, str):
            raise StepRefused(f"The inline workflow definition is invalid: {found}")
        return found
    name, version = param.get("name"), version_of(param.get("version"), f"{field}.version")
    if not isinstance(name, str) or not name:
        raise StepRefused(f"`{field}.name` must be the name of a workflow, not {quote_value(name)}.")
    ctx.require_use(WORKFLOW_TARGET, name, is_authored=written_name == name)
    found = ctx.definition(name, version)
    if found is None:
        raise StepRefused(f"No such workflow definition: {name}, version {version or 'latest'}.")
    return found


def validate_child_input(definition: Definition, given: dict[str, Any], ctx: DecisionContext) -> dict[str, Any]:
    """Return the input of the child.

    Raises:
        StepRefused: when it violates the schema of the child.
    """
    if reason := schema_violation(definition.input_schema, given, "input", ctx):
        raise StepRefused(f"{definition.name} cannot be started: {reason}")
    return given


def version_of(value: Any, field: str) -> int | None:
    """Return a version as a number; None for the newest.

    Raises:
        StepRefused: when it is not a whole number.
    """
    if value in (None, ""):
        return None
    if (number := whole_number(value)) is None:
        raise StepRefused(f"`{field}` must be a whole number, not {quote_value(value)}.")
    return number


def priority_of(value: Any, parents: int) -> int:
    """Return the priority of the child, from 0 to 99; that of the parent if the value is not a number."""
    number = whole_number(value)
    return parents if number is None else min(max(number, 0), 99)


def domains_of(param: Mapping[str, Any], ctx: DecisionContext) -> dict[str, str]:
    """Return the child's map from task type to domain: its own, or the parent's."""
    own = param.get("taskToDomain")
    return (
        {name: field_text(each) for name, each in own.items()}
        if isinstance(own, dict) and own
        else dict(ctx.run.domains)
    )
