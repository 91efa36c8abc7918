"""Release and delete the rows of payloads in blob storage."""

from .statements import execute, fetch


def release_payloads(run_id: str, now: int) -> None:
    """Let the payloads of a deleted run expire, unless other runs use them."""
    execute(
        "UPDATE conductor_storedpayload SET expires_at = %s WHERE path IN "
        "(SELECT payload_id FROM conductor_payloadreference WHERE run_id = %s) AND NOT EXISTS (SELECT 1 FROM "
        "conductor_payloadreference o WHERE o.payload_id = conductor_storedpayload.path AND o.run_id <> %s)",
        [now, run_id, run_id],
    )
    execute("DELETE FROM conductor_payloadreference WHERE run_id = %s", [run_id])


def expired_paths(now: int, limit: int) -> list[str]:
    """Return the paths of expired unused payloads, oldest first."""
    sql = "SELECT path FROM conductor_storedpayload WHERE expires_at IS NOT NULL AND expires_at <= %s"
    return [path for (path,) in fetch(f"{sql} ORDER BY expires_at LIMIT %s", [now, limit])]


def withdraw_payload(path: str, now: int) -> bool:
    """Make an expired payload unusable before its deletion. Returns False if a run has begun to use it."""
    sql = "UPDATE conductor_storedpayload SET size = NULL WHERE path = %s AND expires_at <= %s"
    return execute(sql, [path, now]) == 1


def delete_row(path: str) -> None:
    """Delete the row of a deleted payload."""
    execute("DELETE FROM conductor_payloadreference WHERE payload_id = %s", [path])
    execute("DELETE FROM conductor_storedpayload WHERE path = %s", [path])
