"""The internal provider: an event is an outbox message of this server."""

from typing import Any

from ...core.events import INTERNAL
from ...engine.events import event_intake
from .provider import Provider


class Internal(Provider):
    """Sink for the event handlers of this server."""

    name = INTERNAL

    def publish(self, queue: str, message_id: str, payload: dict[str, Any]) -> None:
        event_intake.publish_internal_event(f"{INTERNAL}:{queue}", message_id, payload)
