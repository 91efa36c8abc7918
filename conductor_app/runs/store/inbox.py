"""The inbox of a run: messages that clients sent, and no step has consumed."""

from datetime import UTC, datetime
from typing import Any

from ...core.data_requests import InboxBatch, InboxMessages
from ...core.snapshot import Run
from ...core.step_types.waiting import PullWorkflowMessages
from ...db.fields import loads_decrypted
from ...db.named_statements import load_statements
from ...db.statements import execute, fetch
from ...settings import conf
from ..models import InboxMessage
from ..models import Run as RunRow

INBOX_SQL = load_statements("runs/store/inbox")
WAITING_TYPE = PullWorkflowMessages.type
MESSAGE_LIFETIME_MS = 86_400_000
"""The lifetime of a message in the inbox, in milliseconds (execution §10.8)."""


def oldest_messages(run: Run, request: InboxMessages, now: int) -> InboxBatch:
    """Return the oldest valid messages that fit into the output of one task, and the number of messages after them."""
    which = {"after": request.after, "expired_at": now - MESSAGE_LIFETIME_MS, "count": request.count}
    rows = _within_output_limit(fetch(*INBOX_SQL["read_inbox"].bind(run_id=run.id, **which)))
    up_to = rows[-1][0] if rows else _last_message_id(run.id)
    [(remaining,)] = fetch(*INBOX_SQL["count_inbox"].bind(run_id=run.id, after=up_to))
    return InboxBatch(tuple(_message_document(run, *row[1:]) for row in rows), up_to, remaining)


def _within_output_limit(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    size = 0
    for place, row in enumerate(rows):
        size += len(row[3])
        if place and size > conf.task_payload_max_bytes // 2:
            return rows[:place]
    return rows


def _last_message_id(run_id: str) -> int:
    return fetch(*INBOX_SQL["find_last_message"].bind(run_id=run_id))[0][0]


def _message_document(run: Run, id: str, received_at: int, payload: str) -> dict[str, Any]:
    at = datetime.fromtimestamp(received_at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"id": id, "workflowId": run.id, "payload": loads_decrypted(payload), "receivedAt": at}


def waiting_attempts(run_id: str) -> list[str]:
    """Return the attempts of the run that wait for messages."""
    rows = fetch(*INBOX_SQL["find_inbox_readers"].bind(run_id=run_id, type=WAITING_TYPE))
    return [id for (id,) in rows]


def delete_expired(run_id: str, now: int) -> int:
    """Delete expired messages. Returns the number of remaining messages."""
    execute(*INBOX_SQL["delete_expired_messages"].bind(run_id=run_id, expired_at=now - MESSAGE_LIFETIME_MS))
    return fetch(*INBOX_SQL["count_inbox"].bind(run_id=run_id, after=0))[0][0]


def add_message(run_id: str, id: str, payload: Any, now: int, count: int) -> None:
    """Add a message to the inbox of a locked run. `count`: the number of messages including this one."""
    InboxMessage.objects.create(id=id, run_id=run_id, received_at=now, payload=payload)
    RunRow.objects.filter(pk=run_id).update(inbox=count)
