"""The kinds of definitions that a folder can contain."""

from collections.abc import Callable, Sequence
from typing import Any

from ...core.document.source_documents import KIND_NAMES, recognize_kind
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
from .operator_kinds import AlertKind, CustomRoleKind, QueueLimitKind

Document = dict[str, Any]
NAME_BY_PLURAL = {plural: name for name, plural in KIND_NAMES.items()}


def source_kinds(parse_schedule: Callable[[Document], Document]) -> tuple[DefinitionKind, ...]:
    """Return the kinds in the order in which they are applied: what a definition uses comes before it."""
    return (
        SchemaKind(), TaskKind(), QueueLimitKind(), FormTemplateKind(), WorkflowKind(), HandlerKind(),
        ScheduleKind(parse_schedule), AlertKind(), CustomRoleKind(),
    )  # fmt: skip


def find_kind(document: Document, kinds: Sequence[DefinitionKind]) -> tuple[DefinitionKind, Document]:
    """Return the kind of a document, stated or recognized, and the document without the field `kind`.

    Raises:
        Invalid: when the kind is unknown, or cannot be recognized.
    """
    name, given = recognize_kind(document), document.get("kind")
    if name not in KIND_NAMES:
        known = ", ".join(KIND_NAMES)
        what = f"The kind {given!r:.60} is unknown" if given is not None else "The kind of the document is unclear"
        raise Invalid(f"{what}. State one of them as `kind`: {known}.")
    fields = {name: value for name, value in document.items() if name != "kind"}
    return next(kind for kind in kinds if kind.plural == KIND_NAMES[name]), fields
