"""Find attempts that wait for webhooks by their conditions, and delete the rows of those that no longer wait."""

from ..db.statements import execute_together, fetch
from .models import WebhookPaths

IS_STILL_WAITING = "a.id = w.attempt_id AND a.status = 'LEASED'"


def condition_paths(workflow: str) -> list[tuple[str, ...]]:
    """Return the sets of paths that conditions of the workflow's tasks have named."""
    rows = WebhookPaths.objects.filter(workflow=workflow).values_list("paths", flat=True)
    return [tuple(paths) for paths in rows]


def waiting_attempts(workflow: str, version: int, digest: str, limit: int) -> list[str]:
    """Return the attempts that wait for this digest, the oldest first. Version 0 matches any version."""
    rows = fetch(
        f"SELECT w.attempt_id FROM conductor_webhookwait w JOIN conductor_attempt a ON {IS_STILL_WAITING} "
        "WHERE w.workflow = %s AND w.digest = %s AND (%s = 0 OR w.version = %s) ORDER BY w.created_at LIMIT %s",
        [workflow, digest, version, version, limit],
    )
    return [attempt_id for (attempt_id,) in rows]


def delete_ended(before: int, limit: int) -> None:
    """Delete rows that are older than `before` and whose attempts no longer wait."""
    execute_together(
        [
            (
                "DELETE FROM conductor_webhookwait WHERE attempt_id IN ("
                "SELECT w.attempt_id FROM conductor_webhookwait w "
                f"WHERE w.created_at < %s "
                f"AND NOT EXISTS (SELECT 1 FROM conductor_attempt a WHERE {IS_STILL_WAITING}) LIMIT %s)",
                [before, limit],
            )
        ]
    )
