"""Where events can come from: this server, webhooks, and the systems that its settings name."""

from .. import conf
from ..core.events import INTERNAL

WEBHOOK = "webhook"
SETTINGS = {
    "amqp_queue": "event_queues_amqp_url",
    "amqp_exchange": "event_queues_amqp_url",
    "redis": "event_queues_redis_url",
    "kafka": "event_queues_kafka_servers",
    "nats": "event_queues_nats_url",
}
"""The systems that can be listened to, each with the setting that says where it is."""


def provider_of(event: str) -> str:
    """The part of an event's name that says where it comes from."""
    return event.partition(":")[0]


def setting_of(event: str) -> str:
    """The setting that is missing for an event to come; empty where none is."""
    setting = SETTINGS.get(provider_of(event), "")
    return setting.upper() if setting and not getattr(conf, setting) else ""


def is_heard_here(event: str) -> bool:
    """Whether an event is told to this server, by its runs, clients or webhooks, and is not fetched by it."""
    return provider_of(event) in (INTERNAL, WEBHOOK) or provider_of(event) not in SETTINGS
