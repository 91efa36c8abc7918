"""Sources of events: this server, webhooks, and the messaging systems of the settings."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import OuterRef, Subquery

from ... import conf
from ...core.events import INTERNAL
from ...models import EventDelivery, EventHandler, EventListener

WEBHOOK = "webhook"
SILENT_MS = 60_000
"""A listener that has not reported for this long counts as gone."""
LIMIT = 500
SETTINGS = {
    "amqp_queue": "event_queues_amqp_url",
    "amqp_exchange": "event_queues_amqp_url",
    "redis": "event_queues_redis_url",
    "kafka": "event_queues_kafka_servers",
    "nats": "event_queues_nats_url",
}
"""The messaging systems, each with the setting that holds its address."""


def provider_of(event: str) -> str:
    """Return the part of an event name that identifies its source."""
    return event.partition(":")[0]


def missing_setting(event: str) -> str:
    """Return the setting that must be configured to receive an event, or an empty text."""
    setting = SETTINGS.get(provider_of(event), "")
    return setting.upper() if setting and not getattr(conf, setting) else ""


def is_internal_event(event: str) -> bool:
    """Return True if runs, clients or webhooks publish the event to this server, so that no listener is needed."""
    return provider_of(event) in (INTERNAL, WEBHOOK) or provider_of(event) not in SETTINGS


@dataclass(frozen=True, slots=True)
class EventSource:
    """One event that active handlers wait for, and how this server receives it."""

    event: str
    handlers: int
    last_at: int | None
    is_heard_here: bool
    setting: str
    listeners: Sequence[EventListener]

    @property
    def connected(self) -> EventListener | None:
        """Return a connected listener, if there is one."""
        return next((each for each in self.listeners if each.connected_at is not None), None)

    @property
    def failing(self) -> EventListener | None:
        """Return a listener that is disconnected by an error, if there is one."""
        return next((each for each in self.listeners if each.connected_at is None and each.error), None)


def event_sources(now: int) -> list[EventSource]:
    """Return the events that active handlers wait for, each with its listeners."""
    newest = EventDelivery.objects.filter(event=OuterRef("event")).order_by("-received_at")
    rows = EventHandler.objects.filter(is_active=True).order_by("event")
    rows = rows.annotate(last_at=Subquery(newest.values("received_at")[:1])).values_list("event", "last_at")
    counts: dict[str, int] = {}
    last: dict[str, int | None] = {}
    for event, at in rows[:LIMIT]:
        counts[event], last[event] = counts.get(event, 0) + 1, at
    listeners: dict[str, list[EventListener]] = {}
    for each in EventListener.objects.filter(seen_at__gte=now - SILENT_MS).order_by("event", "process")[:LIMIT]:
        listeners.setdefault(each.event, []).append(each)
    return [
        EventSource(
            event,
            counts[event],
            last[event],
            is_internal_event(event),
            missing_setting(event),
            listeners.get(event, ()),
        )
        for event in counts
    ]


def newest_by_event(events: Sequence[str]) -> dict[str, int]:
    """Return when each of these events was last received. Runs one statement."""
    newest = EventDelivery.objects.filter(event=OuterRef("event")).order_by("-received_at").values("pk")[:1]
    rows = EventDelivery.objects.filter(event__in=events, pk=Subquery(newest))
    return dict(rows.values_list("event", "received_at"))
