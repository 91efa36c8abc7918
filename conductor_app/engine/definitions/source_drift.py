"""Drift: definitions that were edited or deleted here since a source has applied them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from ...models import AppliedDefinition, AuditEntry
from ...models.applied_definitions import NEWEST
from .definition_kinds import DefinitionKind
from .source_kinds import source_kinds
from .source_plan import find_edits, may_read
from .stored_definitions import StoredDefinition, load_stored

MAX_ROWS = 2_000
KINDS = source_kinds(dict)
"""The kinds. Drift compares stored documents and parses none."""


@dataclass(frozen=True, slots=True)
class DriftItem:
    """An applied definition. `document`: what is here, None if it was deleted. `edits`: sentences.

    `changed_by`, `changed_at`: of the last edit or of the deletion. `newer_version`: one that was saved here; or 0.
    """

    kind: DefinitionKind
    applied: AppliedDefinition
    document: dict[str, Any] | None
    edits: Sequence[str]
    changed_by: str = ""
    changed_at: int = 0
    newer_version: int = 0

    @property
    def is_drifted(self) -> bool:
        return self.document is None or bool(self.edits)

    @property
    def is_deleted(self) -> bool:
        return self.document is None


def find_drift(label: str = "") -> list[DriftItem]:
    """Return the applied definitions that the current actor may read, compared with what is here.

    `label`: of one source; empty for all.
    """
    rows = AppliedDefinition.objects.order_by("label", "kind", "name", "stated_version")
    by_kind: dict[str, list[AppliedDefinition]] = defaultdict(list)
    for row in (rows.filter(label=label) if label else rows)[:MAX_ROWS]:
        by_kind[row.kind].append(row)
    found = [item for kind in KINDS if by_kind[kind.plural] for item in _drift_of_kind(kind, by_kind[kind.plural])]
    return _with_deletions(sorted(found, key=lambda item: (item.applied.label, item.kind.plural, item.applied.name)))


def find_drift_of(pk: int) -> DriftItem | None:
    """Return one applied definition; None if there is none that the current actor may read."""
    row = AppliedDefinition.objects.filter(pk=min(pk, 2**62)).first()
    kind = next((kind for kind in KINDS if row and kind.plural == row.kind), None)
    found = _drift_of_kind(kind, [row]) if row and kind else []
    return found[0] if found else None


def _drift_of_kind(kind: DefinitionKind, rows: Sequence[AppliedDefinition]) -> list[DriftItem]:
    rows = [row for row in rows if may_read(kind, row.name)]
    stored = load_stored(kind, {(row.name, row.stated_version) for row in rows})
    return [_compare(kind, row, stored.get((row.name, row.stated_version))) for row in rows]


def _compare(kind: DefinitionKind, row: AppliedDefinition, stored: StoredDefinition | None) -> DriftItem:
    if stored is None:
        return DriftItem(kind, row, None, ())
    newer = stored.version if row.stated_version == NEWEST and stored.version > row.version else 0
    edits = find_edits(kind, row, stored)
    return DriftItem(kind, row, stored.document, edits, stored.changed_by, stored.changed_at, newer)


def _with_deletions(items: list[DriftItem]) -> list[DriftItem]:
    """Return the items with who has deleted those that are missing, from the audit log."""
    missing = {_audit_key(item): item for item in items if item.is_deleted}
    if not missing:
        return items
    of_objects = Q(pk__in=[])
    for type in {type for type, _ in missing}:
        of_objects |= Q(object_type=type, object_id__in=[id for each, id in missing if each == type])
    entries = AuditEntry.objects.filter(of_objects, action="delete").order_by("at")
    deleted = {(entry.object_type, entry.object_id): entry for entry in entries}
    result = []
    for item in items:
        entry = deleted.get(_audit_key(item)) if item.is_deleted else None
        result.append(
            DriftItem(item.kind, item.applied, None, (), entry.actor, entry.at) if entry is not None else item
        )
    return result


def _audit_key(item: DriftItem) -> tuple[str, str]:
    version = f":{item.applied.version}" if item.kind.has_versions else ""
    return item.kind.audit_type, f"{item.applied.name}{version}"


def exported_document(item: DriftItem) -> dict[str, Any] | None:
    """Return what is here as a document for the folder: without fields that the server fills in; None if deleted.

    A document that follows the newest version has no version.
    """
    if item.document is None:
        return None
    left_out = {"createTime", "updateTime", "createdBy", "updatedBy", "ownerApp"}
    if item.kind.has_versions and item.applied.stated_version == NEWEST:
        left_out.add("version")
    return {name: value for name, value in item.document.items() if name not in left_out}
