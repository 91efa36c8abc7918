"""Audit entry and cache invalidation for a change of a definition."""

from django.db.models import F

from ...models import DefinitionRevision
from .. import audit


def record_definition_change(kind: str, id: str, action: str, by: str, reason: str, now: int) -> None:
    """Record who changed a definition, and invalidate the definition caches of all processes."""
    audit.record(kind, id, action, by, reason=reason, at=now)
    bump_definitions_revision()


def bump_definitions_revision() -> None:
    """Invalidate the definition caches of all processes."""
    if not DefinitionRevision.objects.filter(pk=1).update(revision=F("revision") + 1):
        DefinitionRevision.objects.create(pk=1, revision=1)
