"""The kinds of definitions in a folder: their names, and how the kind of a document without one is recognized."""

from collections.abc import Callable, Sequence
from typing import Any

from ...core.document.checks.field_specs import TASK_DEFINITION
from ...core.errors import Invalid
from .definition_kinds import (
    DefinitionKind,
    FormTemplateKind,
    HandlerKind,
    ScheduleKind,
    SchemaKind,
    TaskKind,
    WorkflowKind,
)

Document = dict[str, Any]
KIND_NAMES = {
    "schema": "schemas",
    "task": "tasks",
    "form-template": "form-templates",
    "workflow": "workflows",
    "event-handler": "event-handlers",
    "schedule": "schedules",
}
"""The values of `kind` in a document, and the plural of the kind that each names."""
NAME_BY_PLURAL = {plural: name for name, plural in KIND_NAMES.items()}
TASK_FIELDS = frozenset(spec.name for spec in TASK_DEFINITION)


def source_kinds(parse_schedule: Callable[[Document], Document]) -> tuple[DefinitionKind, ...]:
    """Return the kinds in the order in which they are applied: what a definition uses comes before it."""
    return (
        SchemaKind(), TaskKind(), FormTemplateKind(), WorkflowKind(), HandlerKind(), ScheduleKind(parse_schedule),
    )  # fmt: skip


def find_kind(document: Document, kinds: Sequence[DefinitionKind]) -> tuple[DefinitionKind, Document]:
    """Return the kind of a document, stated or recognized, and the document without the field `kind`.

    Raises:
        Invalid: when the kind is unknown, or cannot be recognized.
    """
    fields = {name: value for name, value in document.items() if name != "kind"}
    given = document.get("kind")
    name = given if isinstance(given, str) else recognize_kind(fields)
    if name not in KIND_NAMES:
        known = ", ".join(KIND_NAMES)
        what = f"The kind {given!r:.60} is unknown" if given is not None else "The kind of the document is unclear"
        raise Invalid(f"{what}. State one of them as `kind`: {known}.")
    return next(kind for kind in kinds if kind.plural == KIND_NAMES[name]), fields


def recognize_kind(document: Document) -> str:
    """Return the name of the kind that has such fields, or an empty text."""
    if isinstance(document.get("tasks"), list):
        return "workflow"
    if "startWorkflowRequest" in document:
        return "schedule"
    if "event" in document and "actions" in document:
        return "event-handler"
    if "jsonSchema" in document or "templateUI" in document:
        return "form-template"
    if "data" in document and "name" in document:
        return "schema"
    return "task" if "name" in document and document.keys() <= TASK_FIELDS else ""
