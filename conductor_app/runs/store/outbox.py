"""Messages of the outbox: to other runs, to event sinks and to persons. The statements are in `messages.sql`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...core.snapshot import NEVER
from ...db.statements import execute, fetch, load_statements
from ..models import PUBLISH, Message
from .writing import StatementBatch

MESSAGES_SQL = load_statements("runs/store/messages", never=str(NEVER))


def send(subject: str, now: int, *, to: str = "", facts: Mapping[str, Any] | None = None) -> Message:
    """Write one message, to be delivered after the commit."""
    return Message.objects.create(to=to, subject=subject, facts=dict(facts or {}), sent_at=now, due_at=now)


def send_all(messages: Sequence[Message]) -> list[Message]:
    return Message.objects.bulk_create(messages, batch_size=500) if messages else []


def consume(id: int) -> bool:
    """Delete a handled message. Returns False if another process has handled it."""
    return bool(execute(*MESSAGES_SQL["consume_message"].bind(id=id)))


def consume_with(writes: StatementBatch, id: int) -> None:
    """Delete a handled message together with other statements, which fail if another process has handled it."""
    writes.run(*MESSAGES_SQL["consume_message"].bind(id=id), expected=1)


def delete_messages_to(address: str) -> None:
    Message.objects.filter(to=address).delete()


def update_messages(ids: Iterable[int], **fields: Any) -> None:
    """Change fields of messages, such as `due_at`, `tries` and `error`."""
    Message.objects.filter(pk__in=list(ids)).update(**fields)


def delay_sink(sink: str, now: int, due_at: int) -> None:
    Message.objects.filter(subject=PUBLISH, to=sink, due_at__lte=now).update(due_at=due_at)


def retry_undelivered(ids: Iterable[int], now: int) -> None:
    """Make undelivered messages due, with all their tries. They retain the last error."""
    Message.objects.undelivered().filter(pk__in=list(ids)).update(due_at=now, tries=0)


def discard_undelivered(ids: Iterable[int]) -> None:
    Message.objects.undelivered().filter(pk__in=list(ids)).delete()


def prune_undelivered(before: int) -> int:
    """Delete undelivered messages that were sent before a time, and return how many. Open runs keep theirs."""
    return execute(*MESSAGES_SQL["prune_undelivered"].bind(before=before))


def due_messages(now: int, limit: int) -> list[int]:
    """Return messages that were not delivered right after their commit."""
    return [id for (id,) in fetch(*MESSAGES_SQL["due_messages"].bind(now=now, limit=limit))]


def claim_to_publish(now: int, held_until: int, count: int) -> list[int]:
    """Claim due messages to other systems until `held_until`, and return their ids. Locked rows are skipped."""
    statement = MESSAGES_SQL["claim_to_publish"]
    claimed = fetch(*statement.bind(now=now, held_until=held_until, count=count))
    return sorted(id for (id,) in claimed)
