"""Attempts that wait for webhooks, found by their conditions, and deleted when they no longer wait."""

from ..models import WebhookPaths
from .statements import execute_together, fetch

IS_STILL_WAITING = "a.id = w.attempt_id AND a.status = 'LEASED'"


def condition_paths(workflow: str) -> list[tuple[str, ...]]:
    """Return the sets of paths that conditions of the workflow's tasks have named."""
    rows = WebhookPaths.objects.filter(workflow=workflow).values_list("paths", flat=True)
    return [tuple(paths) for paths in rows]


def waiting_attempts(workflow: str, version: int, digest: str, most: int) -> list[str]:
    """Return the attempts that wait for this digest, those that have waited longest first; version 0 is any."""
    rows = fetch(
        f"SELECT w.attempt_id FROM conductor_webhookwait w JOIN conductor_attempt a ON {IS_STILL_WAITING} "
        "WHERE w.workflow = %s AND w.digest = %s AND (%s = 0 OR w.version = %s) ORDER BY w.created_at LIMIT %s",
        [workflow, digest, version, version, most],
    )
    return [attempt_id for (attempt_id,) in rows]


def delete_ended(before: int, most: int) -> None:
    """Delete rows, older than a time, whose attempts no longer wait."""
    execute_together(
        [
            (
                "DELETE FROM conductor_webhookwait WHERE attempt_id IN ("
                "SELECT w.attempt_id FROM conductor_webhookwait w "
                f"WHERE w.created_at < %s "
                f"AND NOT EXISTS (SELECT 1 FROM conductor_attempt a WHERE {IS_STILL_WAITING}) LIMIT %s)",
                [before, most],
            )
        ]
    )
