"""Audit entries for changes of access."""

from typing import Any

from .. import audit


def record_access_change(kind: str, id: str, action: str, by: str, reason: str = "", **facts: Any) -> None:
    """Write an audit entry, in the transaction of the change."""
    audit.record(kind, id, action, by, reason=reason, facts=facts)
