"""The providers of sinks, to which events are published, and of queues, from which they are received."""

from typing import Any

from ...core.events import INTERNAL
from ..commands.intake import publish_internal_event
from .base import Provider, SinkFailed
from .brokers import AmqpExchange, AmqpQueue, Redis
from .kafka import Kafka
from .nats import JetStream, Nats
from .sqs import Sqs


def publish(sink: str, message_id: str, payload: dict[str, Any]) -> None:
    """Publish an event to a sink, `provider:queue`.

    Raises:
        SinkUnavailable: when the sink cannot be reached.
        SinkFailed: when it is unknown or refuses the event. The message is readable for users.
    """
    name, _, queue = sink.partition(":")
    provider = PROVIDERS.get(name)
    if provider is None:
        raise SinkFailed(f"The sink '{sink[:200]}' has an unknown provider. Use one of: {', '.join(PROVIDERS)}.")
    if not queue:
        raise SinkFailed(f"The sink '{sink[:200]}' has no queue. Use the form {name}:orders.")
    provider.publish(queue, message_id, payload)


class Internal(Provider):
    """Sink for the event handlers of this server."""

    name = INTERNAL

    def publish(self, queue: str, message_id: str, payload: dict[str, Any]) -> None:
        publish_internal_event(f"{INTERNAL}:{queue}", message_id, payload)


PROVIDERS: dict[str, Provider] = {
    provider.name: provider
    for provider in (Internal(), AmqpQueue(), AmqpExchange(), Redis(), Kafka(), Nats(), JetStream(), Sqs())
}
