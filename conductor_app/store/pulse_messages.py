"""Claims and deletion of Pulse messages."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.snapshot import NEVER
from ..models import PulseMessage
from .statement_batch import StatementBatch
from .statements import fetch, lock_clause

EARLIER_MESSAGE_EXISTS = (
    f"SELECT 1 FROM conductor_pulsemessage e WHERE e.group_id = n.group_id AND e.id < n.id AND e.due_at < {NEVER}"
)
"""Unpublished earlier messages about the same group."""
MAX_MESSAGES = 1000
"""The maximum number of messages per task or group that are kept when no exchange is configured."""


class NewPulseMessage(NamedTuple):
    """A message that is not stored yet. At hundreds per second, a tuple is ten times cheaper than a model instance."""

    task_id: str
    group_id: str
    name: str
    key: str
    routes: Sequence[str]
    payload: dict[str, Any]
    sent_at: int
    due_at: int


def delete_oldest(writes: StatementBatch, newest: NewPulseMessage) -> None:
    """Delete the oldest messages beyond the limit per task or group, because clients can repeat requests endlessly."""
    owner = "task_id = %s AND group_id = %s"
    writes.run(
        f"DELETE FROM conductor_pulsemessage WHERE {owner} "
        f"AND id <= (SELECT id FROM conductor_pulsemessage WHERE {owner} "
        f"ORDER BY id DESC LIMIT 1 OFFSET {MAX_MESSAGES})",
        [newest.task_id, newest.group_id] * 2,
    )


def claim_due(now: int, held_until: int, count: int) -> list[int]:
    """Claim due messages until `held_until`, and return their ids. Locked rows are skipped.

    A message is claimed only after all earlier messages of its task are published, and a message about a group only
    after all earlier messages of the group's tasks.
    """
    chosen = (
        f"SELECT n.id FROM conductor_pulsemessage n WHERE n.due_at <= %s AND n.due_at < {NEVER} "
        f"AND NOT EXISTS ({EARLIER_MESSAGE_EXISTS} AND e.task_id = n.task_id) "
        f"AND (n.task_id <> '' OR NOT EXISTS ({EARLIER_MESSAGE_EXISTS})) "
        f"ORDER BY n.due_at, n.id LIMIT %s{lock_clause('n', skip_locked=True)}"
    )
    claimed = fetch(
        f"WITH chosen AS MATERIALIZED ({chosen}) UPDATE conductor_pulsemessage SET due_at = %s "
        "WHERE id IN (SELECT id FROM chosen) RETURNING id",
        [now, count, held_until],
    )
    return [id for (id,) in claimed]


def delete_messages(ids: Sequence[int]) -> None:
    """Delete messages that the exchange has received."""
    PulseMessage.objects.filter(pk__in=ids).delete()


def schedule_retry(id: int, tries: int, due_at: int, error: str) -> None:
    """Set when a message that could not be published is tried again."""
    PulseMessage.objects.filter(pk=id).update(tries=tries, due_at=due_at, error=error)
