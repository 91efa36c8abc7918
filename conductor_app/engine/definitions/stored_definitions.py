"""Definitions of several kinds as they are stored, with who changed them last."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Max, OuterRef, Q, Subquery

from ...models.applied_definitions import NEWEST
from .definition_kinds import DefinitionKind

CHUNK = 200
StoredKey = tuple[str, int]
"""The name of a definition, and its version or NEWEST."""


@dataclass(frozen=True, slots=True)
class StoredDefinition:
    """A definition. `version`: 0 if its kind has none. `changed_at`: of the last change, in epoch milliseconds."""

    document: dict[str, Any]
    version: int
    changed_by: str
    changed_at: int


def load_stored(kind: DefinitionKind, wanted: Iterable[StoredKey]) -> dict[StoredKey, StoredDefinition]:
    """Return the definitions of one kind that exist, with one query for 200 of them."""
    found: dict[StoredKey, StoredDefinition] = {}
    keys = sorted(set(wanted))
    for start in range(0, len(keys), CHUNK):
        found |= _load_chunk(kind, set(keys[start : start + CHUNK]))
    return found


def _load_chunk(kind: DefinitionKind, wanted: set[StoredKey]) -> dict[StoredKey, StoredDefinition]:
    names = {name for name, _ in wanted}
    if not kind.has_versions:
        return {
            (name, NEWEST): StoredDefinition(document, 0, changed_by, changed_at)
            for name, document, changed_by, changed_at in kind.load(names)
        }
    rows = kind.model.objects.filter(name__in=names)
    of_name = kind.model.objects.filter(name=OuterRef("name")).order_by().values("name")
    newest = Subquery(of_name.annotate(newest=Max("version")).values("newest"))
    is_stated = Q(version__in={version for _, version in wanted if version != NEWEST})
    found: dict[StoredKey, StoredDefinition] = {}
    for row in rows.annotate(newest_version=newest).filter(is_stated | Q(version=newest)):
        author, at = row.updated_by or row.created_by, row.updated_at or row.created_at
        stored = StoredDefinition(kind.stored(row), row.version, author, at)
        found[row.name, row.version] = stored
        if row.version == row.newest_version:
            found[row.name, NEWEST] = stored
    return found


def differences(kind: DefinitionKind, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the differences between two documents of a kind as sentences, without those of the version and of tags.

    Tags count only where both documents have them: other tools set them too.
    """
    before, after = kind.comparable(before), kind.comparable(after)
    skipped = {"version"} if kind.has_versions else set()
    if not before.get("tags") or not after.get("tags"):
        skipped.add("tags")
    before, after = (
        {name: value for name, value in document.items() if name not in skipped} for document in (before, after)
    )
    return [] if before == after else kind.changes(before, after)
