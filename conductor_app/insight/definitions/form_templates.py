"""Lookups of form templates: by name and version, and by the input of a HUMAN task."""

from collections.abc import Mapping
from typing import Any

from ...core.errors import NotFound
from ...core.human_task import named_template
from ...core.step_types.human import Human
from ...models import FormTemplate


def find_template(name: str, version: int = 0) -> FormTemplate:
    """Return a template; the newest version if `version` is 0.

    Raises:
        NotFound: when there is no such template.
    """
    rows = FormTemplate.objects.filter(name=name)
    row = (rows.filter(version=version) if version else rows.order_by("-version")).first()
    if row is None:
        raise NotFound(f"No such form template: {name}" + (f", version {version}" if version else ""))
    return row


def template_of(input: Mapping[str, Any]) -> FormTemplate | None:
    """Return the template that the input of a HUMAN task names, or None if it names none or a deleted one."""
    named = named_template(input)
    if named is None:
        return None
    try:
        return find_template(*named)
    except NotFound:
        return None


def named_templates(definition: Any) -> set[tuple[str, int]]:
    """Return name and version of each template that the HUMAN steps of a workflow definition use."""
    found: set[tuple[str, int]] = set()
    left = [definition]
    while left:
        value = left.pop()
        if isinstance(value, list):
            left += value
        elif isinstance(value, Mapping):
            given = value.get("inputParameters")
            if value.get("type") == Human.type and isinstance(given, Mapping) and (named := named_template(given)):
                found.add(named)
            left += value.values()
    return found
