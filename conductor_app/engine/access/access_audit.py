"""Audit entries for changes of access."""

from typing import Any

from ... import clock
from ...models import AuditEntry


def record_access_change(kind: str, id: str, action: str, by: str, reason: str = "", **facts: Any) -> None:
    """Write an audit entry, in the transaction of the change."""
    AuditEntry.objects.create(
        at=clock.now(),
        actor=by[:255],
        action=action,
        object_type=kind,
        object_id=id[:320],
        reason=reason,
        facts=facts,
    )
