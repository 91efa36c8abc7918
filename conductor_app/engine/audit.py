"""Write the audit log: who did what to which object, and why."""

from collections.abc import Mapping
from typing import Any

from .. import clock
from ..models import AuditEntry
from ..telemetry import log_context


def record(
    object_type: str,
    object_id: str | int,
    action: str,
    by: str,
    *,
    reason: str = "",
    facts: Mapping[str, Any] | None = None,
    at: int | None = None,
) -> None:
    """Write an audit entry. Call it in the transaction of the change.

    `at`: the time of the change in epoch milliseconds; now, if it is not given.
    """
    AuditEntry.objects.create(
        at=clock.now() if at is None else at,
        actor=by[:255],
        action=action,
        object_type=object_type,
        object_id=str(object_id)[:320],
        reason=reason,
        facts=dict(facts or {}),
        request_id=log_context.request_id(),
    )
