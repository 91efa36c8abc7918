"""The shape of a provider of events."""

from typing import Any


class SinkFailed(Exception):
    """The event could not be told; the text says why, with no address that may hold a password."""


class Provider:
    """A system that events are told to."""

    name: str

    def publish(self, queue: str, message_id: str, payload: dict[str, Any]) -> None:
        """Tell an event; returns when the other system has it. Raises SinkFailed."""
        raise NotImplementedError
