"""Status of the listeners that receive events from other systems, saved by their processes for the admin pages."""

from collections.abc import Collection, Sequence

from ... import clock
from ...models import EventListener
from ...store.rows import strip_nul

FORGOTTEN_MS = 86_400_000
FACTS = ("seen_at", "connected_at", "last_message_at", "error", "failed_at")


def record_listeners(listeners: Sequence[EventListener]) -> None:
    """Save the status of each listener, and delete those that were not updated for a day."""
    now = clock.now()
    for each in listeners:
        each.seen_at, each.error = now, strip_nul(each.error)[:2000]
    # New instances: a saved instance carries its primary key, which the upsert must not insert.
    facts = [{name: getattr(each, name) for name in FACTS} for each in listeners]
    rows = [
        EventListener(event=each.event, process=each.process, **values)
        for each, values in zip(listeners, facts, strict=True)
    ]
    EventListener.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["event", "process"], update_fields=list(FACTS)
    )
    EventListener.objects.filter(seen_at__lt=now - FORGOTTEN_MS).delete()


def remove_listeners(process: str, events: Collection[str]) -> None:
    """Delete the status of listeners that a process has stopped."""
    EventListener.objects.filter(process=process, event__in=list(events)).delete()
