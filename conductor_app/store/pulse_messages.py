"""Claims and deletion of Pulse messages."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..models import PulseMessage
from .outbox_messages import MESSAGES_SQL
from .statement_batch import StatementBatch
from .statements import fetch

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
    statement = MESSAGES_SQL["delete_oldest_pulse_messages"]
    writes.run(*statement.bind(task_id=newest.task_id, group_id=newest.group_id, kept=MAX_MESSAGES))


def claim_due(now: int, held_until: int, count: int) -> list[int]:
    """Claim due messages until `held_until`, and return their ids. Locked rows are skipped.

    A message is claimed only after all earlier messages of its task are published, and a message about a group only
    after all earlier messages of the group's tasks.
    """
    statement = MESSAGES_SQL["claim_pulse_messages"]
    claimed = fetch(*statement.bind(now=now, held_until=held_until, count=count))
    return [id for (id,) in claimed]


def delete_messages(ids: Sequence[int]) -> None:
    """Delete messages that the exchange has received."""
    PulseMessage.objects.filter(pk__in=ids).delete()


def schedule_retry(id: int, tries: int, due_at: int, error: str) -> None:
    """Set when a message that could not be published is tried again."""
    PulseMessage.objects.filter(pk=id).update(tries=tries, due_at=due_at, error=error)
