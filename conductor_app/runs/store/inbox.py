"""The inbox of a run: messages that clients sent, and no step has consumed."""

from datetime import UTC, datetime
from typing import Any

from ...core.data_requests import InboxBatch, InboxMessages
from ...core.snapshot import Run
from ...core.step_types.waiting import PullWorkflowMessages
from ...db.fields import loads_decrypted
from ...db.statements import execute, fetch
from ...settings import conf
from ..models import InboxMessage
from ..models import Run as RunRow

WAITING_TYPE = PullWorkflowMessages.type
MESSAGE_LIFETIME_MS = 86_400_000
"""The lifetime of a message in the inbox, in milliseconds (execution §10.8)."""


def oldest_messages(run: Run, request: InboxMessages, now: int) -> InboxBatch:
    """Return the oldest valid messages that fit into the output of one task, and the number of messages after them."""
    rows = fetch(
        "SELECT number, id, received_at, payload FROM conductor_inboxmessage WHERE run_id = %s AND number > %s "
        "AND received_at > %s ORDER BY number LIMIT %s",
        [run.id, request.after, now - MESSAGE_LIFETIME_MS, request.count],
    )
    rows = _within_output_limit(rows)
    up_to = rows[-1][0] if rows else _last_message_id(run.id)
    [(remaining,)] = fetch(
        "SELECT COUNT(*) FROM conductor_inboxmessage WHERE run_id = %s AND number > %s", [run.id, up_to]
    )
    return InboxBatch(tuple(_message_document(run, *row[1:]) for row in rows), up_to, remaining)


def _within_output_limit(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    size = 0
    for place, row in enumerate(rows):
        size += len(row[3])
        if place and size > conf.task_payload_max_bytes // 2:
            return rows[:place]
    return rows


def _last_message_id(run_id: str) -> int:
    return fetch("SELECT COALESCE(MAX(number), 0) FROM conductor_inboxmessage WHERE run_id = %s", [run_id])[0][0]


def _message_document(run: Run, id: str, received_at: int, payload: str) -> dict[str, Any]:
    at = datetime.fromtimestamp(received_at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"id": id, "workflowId": run.id, "payload": loads_decrypted(payload), "receivedAt": at}


def waiting_attempts(run_id: str) -> list[str]:
    """Return the attempts of the run that wait for messages."""
    rows = fetch(
        "SELECT attempt_id FROM conductor_task WHERE run_id = %s AND status = 'ACTIVE' AND type = %s ORDER BY seq",
        [run_id, WAITING_TYPE],
    )
    return [id for (id,) in rows]


def delete_expired(run_id: str, now: int) -> int:
    """Delete expired messages. Returns the number of remaining messages."""
    execute(
        "DELETE FROM conductor_inboxmessage WHERE run_id = %s AND received_at <= %s",
        [run_id, now - MESSAGE_LIFETIME_MS],
    )
    return fetch("SELECT COUNT(*) FROM conductor_inboxmessage WHERE run_id = %s", [run_id])[0][0]


def add_message(run_id: str, id: str, payload: Any, now: int, count: int) -> None:
    """Add a message to the inbox of a locked run. `count`: the number of messages including this one."""
    InboxMessage.objects.create(id=id, run_id=run_id, received_at=now, payload=payload)
    RunRow.objects.filter(pk=run_id).update(inbox=count)
