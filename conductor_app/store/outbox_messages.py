"""Writes of outbox messages to runs, tasks and other systems."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.snapshot import NEVER
from ..models import Message
from ..models.outbox import PUBLISH
from .due_rows import OPEN_RUN
from .statement_batch import StatementBatch
from .statements import execute

CONSUME = "DELETE FROM conductor_message WHERE id = %s"
EXPIRED_MESSAGES = f"""due_at = {NEVER} AND sent_at < %s AND (
    subject IN ('publish', 'event', 'act')
    OR (subject IN ('begin', 'child_ended', 'terminate', 'started', 'inbox') AND NOT EXISTS (
        SELECT 1 FROM conductor_run r WHERE r.id = conductor_message."to" AND r.{OPEN_RUN})))"""
"""Undelivered messages that have no effect any more, or only on other systems: not those to open runs, and not those
that may reopen an ended run. These are deleted with their run, or by an operator."""


def send(subject: str, now: int, *, to: str = "", facts: Mapping[str, Any] | None = None) -> Message:
    """Write one message, to be delivered after the commit."""
    return Message.objects.create(to=to, subject=subject, facts=dict(facts or {}), sent_at=now, due_at=now)


def send_all(messages: Sequence[Message]) -> list[Message]:
    """Write several messages."""
    return Message.objects.bulk_create(messages, batch_size=500) if messages else []


def consume(id: int) -> bool:
    """Delete a handled message. Returns False if another process has handled it."""
    return bool(execute(CONSUME, [id]))


def consume_with(writes: StatementBatch, id: int) -> None:
    """Delete a handled message together with other statements, which fail if another process has handled it."""
    writes.run(CONSUME, [id], expected=1)


def delete_messages_to(address: str) -> None:
    """Delete the messages to a deleted run or task."""
    Message.objects.filter(to=address).delete()


def update_messages(ids: Iterable[int], **fields: Any) -> None:
    """Change fields of messages, such as `due_at`, `tries` and `error`."""
    Message.objects.filter(pk__in=list(ids)).update(**fields)


def delay_sink(sink: str, now: int, due_at: int) -> None:
    """Delay all due messages to the same sink."""
    Message.objects.filter(subject=PUBLISH, to=sink, due_at__lte=now).update(due_at=due_at)


def retry_undelivered(ids: Iterable[int], now: int) -> None:
    """Make undelivered messages due, with all their tries. They retain the last error."""
    Message.objects.undelivered().filter(pk__in=list(ids)).update(due_at=now, tries=0)


def discard_undelivered(ids: Iterable[int]) -> None:
    """Delete undelivered messages."""
    Message.objects.undelivered().filter(pk__in=list(ids)).delete()


def prune_undelivered(before: int) -> int:
    """Delete undelivered messages that were sent before a time, and return how many. Open runs keep theirs."""
    return execute(f"DELETE FROM conductor_message WHERE {EXPIRED_MESSAGES}", [before])
