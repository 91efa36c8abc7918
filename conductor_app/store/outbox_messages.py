"""Writes of outbox messages to runs, tasks and other systems."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.snapshot import NEVER
from ..models import Message
from ..models.outbox import PUBLISH


def send(subject: str, now: int, *, to: str = "", facts: Mapping[str, Any] | None = None) -> Message:
    """Write one message, to be delivered after the commit."""
    return Message.objects.create(to=to, subject=subject, facts=dict(facts or {}), sent_at=now, due_at=now)


def send_all(messages: Sequence[Message]) -> list[Message]:
    """Write several messages."""
    return Message.objects.bulk_create(messages, batch_size=500) if messages else []


def consume(id: int) -> bool:
    """Delete a handled message. Returns False if another process has handled it."""
    return bool(Message.objects.filter(pk=id).delete()[0])


def delete_messages_to(address: str) -> None:
    """Delete the messages to a deleted run or task."""
    Message.objects.filter(to=address).delete()


def update_messages(ids: Iterable[int], **fields: Any) -> None:
    """Change fields of messages, such as `due_at`, `tries` and `error`."""
    Message.objects.filter(pk__in=list(ids)).update(**fields)


def delay_sink(sink: str, now: int, due_at: int) -> None:
    """Delay all due messages to the same sink."""
    Message.objects.filter(subject=PUBLISH, to=sink, due_at__lte=now).update(due_at=due_at)


def delete_dead_letters(before: int) -> int:
    """Delete messages to sinks that ran out of tries and were sent before a time. Returns how many."""
    return Message.objects.filter(subject=PUBLISH, due_at=NEVER, sent_at__lt=before).delete()[0]
