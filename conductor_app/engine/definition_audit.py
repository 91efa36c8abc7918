"""A change of what is defined: noted, and told to all processes that remember definitions."""

from django.db.models import F

from ..models import AuditEntry, DefinitionRevision


def record_definition_change(kind: str, id: str, action: str, by: str, reason: str, now: int) -> None:
    """Note who has changed it; what processes have read of the definitions is out of date from now on."""
    AuditEntry.objects.create(at=now, actor=by, action=action, object_type=kind, object_id=id[:320], reason=reason)
    if not DefinitionRevision.objects.filter(pk=1).update(revision=F("revision") + 1):
        DefinitionRevision.objects.create(pk=1, revision=1)
