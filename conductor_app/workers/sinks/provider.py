"""The shape of a provider of events."""

import json
import uuid
from collections.abc import Callable
from typing import Any

MessageHandler = Callable[[str, Any], None]
"""Hears one event: an id that stays the same when the message comes again, and the payload. Raises if it could not."""


class SinkFailed(Exception):
    """The event could not be told; the text says why, with no address that may hold a password."""


class Provider:
    """A system that events are told to, and come from."""

    name: str
    setting = ""  # the environment variable that says where it is

    @property
    def is_configured(self) -> bool:
        """Whether the operator has said where it is."""
        return True

    def publish(self, queue: str, message_id: str, payload: dict[str, Any]) -> None:
        """Tell an event; returns when the other system has it. Raises SinkFailed."""
        raise NotImplementedError

    def consume(self, queue: str, handle_message: MessageHandler, is_stopping: Callable[[], bool]) -> None:
        """Hear events until it is time to stop; each is acknowledged once it was heard. Raises when the line breaks."""
        raise NotImplementedError

    def require_configured(self) -> None:
        """Raises SinkFailed where nobody has said where the system is."""
        if not self.is_configured:
            raise SinkFailed(f"Events to {self.name} are not configured: the server needs {self.setting}.")


def import_library(provider: Provider, module: str, extra: str = "events") -> Any:
    """A library that only this provider needs; raises SinkFailed where it is not installed."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise SinkFailed(
            f"Events to {provider.name} need the library {module}: pip install 'conductor-app[{extra}]'."
        ) from None


def parse_payload(body: bytes | str) -> Any:
    """What a message holds: JSON, or else text."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def message_id_of(message_id: Any) -> str:
    """The sender's id of a message; one of our own where there is none, since then no two are known to be the same."""
    return str(message_id) if message_id not in (None, "", b"") else str(uuid.uuid4())
