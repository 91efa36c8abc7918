"""How it goes with those who listen to other systems: noted by the process that listens, for the pages."""

from collections.abc import Collection, Sequence

from .. import clock
from ..models import EventListener
from ..store.rows import strip_nul

FORGOTTEN_MS = 86_400_000
FACTS = ("seen_at", "connected_at", "last_message_at", "error", "failed_at")


def record_listeners(listeners: Sequence[EventListener]) -> None:
    """Write down how it goes with each of these; what nobody has said anything of for a day is forgotten."""
    now = clock.now()
    for each in listeners:
        each.seen_at, each.error = now, strip_nul(each.error)[:2000]
    # Rows of their own, since one that was written once would come with its number.
    facts = [{name: getattr(each, name) for name in FACTS} for each in listeners]
    rows = [
        EventListener(event=each.event, process=each.process, **said)
        for each, said in zip(listeners, facts, strict=True)
    ]
    EventListener.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["event", "process"], update_fields=list(FACTS)
    )
    EventListener.objects.filter(seen_at__lt=now - FORGOTTEN_MS).delete()


def remove_listeners(process: str, events: Collection[str]) -> None:
    """The process listens to these no more."""
    EventListener.objects.filter(process=process, event__in=list(events)).delete()
