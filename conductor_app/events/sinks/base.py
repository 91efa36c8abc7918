"""What all providers of sinks have in common: their interface, their errors, and the contents of messages."""

import importlib
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from ...core.trace_context import HEADER, parse_traceparent
from ...settings import conf

MessageHandler = Callable[[str, Any], None]
"""Processes an event. Arguments: its id, which is the same in repeated deliveries, and its payload."""
LOOK_SECONDS = 0.5
GROUP = "conductor"
CONNECT_SECONDS = 5
ANSWER_SECONDS = 15


class SinkFailed(Exception):
    """The event could not be published. The message has no addresses, because they may include a password."""


class SinkUnavailable(SinkFailed, ConnectionError):
    """The other system did not answer, or cannot accept any message at present. The same event may succeed later."""


class Provider:
    """A system to which events are published, and from which they are received."""

    name: str
    setting = ""  # The environment variable with the address.

    @property
    def is_configured(self) -> bool:
        """Return True if the operator has configured the address, or there is none."""
        return not self.setting or bool(getattr(conf, self.setting.lower()))

    def publish(self, queue: str, message_id: str, payload: dict[str, Any]) -> None:
        """Publish an event, and return when the other system has it.

        Raises:
            SinkUnavailable: when the other system does not answer.
            SinkFailed: when it refuses the event.
        """
        raise NotImplementedError

    def consume(self, queue: str, handle_message: MessageHandler, is_stopping: Callable[[], bool]) -> None:
        """Consume events until `is_stopping` returns True. Each event is acknowledged after `handle_message` returns.

        Exceptions of the connection and of `handle_message` propagate.
        """
        raise NotImplementedError

    def require_configured(self) -> None:
        """Check that the address is configured.

        Raises:
            SinkFailed: when the address is not configured.
        """
        if not self.is_configured:
            raise SinkFailed(f"Events to {self.name} are not configured. Set {self.setting} on the server.")


def import_library(provider: Provider, module: str) -> Any:
    """Import a library that only this provider needs.

    Raises:
        SinkFailed: when it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise SinkFailed(
            f"Events to {provider.name} need the library {module}. Install conductor-app with its extra `events`."
        ) from None


def parse_payload(body: bytes | str) -> Any:
    """Return the content of a message: JSON, otherwise text."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def message_id_of(message_id: Any) -> str:
    """Return the sender's id of a message, or a new id. Messages without an id are not deduplicated."""
    return str(message_id) if message_id not in (None, "", b"") else str(uuid.uuid4())


def trace_headers(payload: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of the message of an event: its trace, if its payload has one."""
    traceparent = parse_traceparent(payload.get(HEADER))
    return {HEADER: traceparent} if traceparent else {}


def with_trace_of(payload: Any, header: object) -> Any:
    """Return the payload of an event with the trace in the headers of its message, unless it has one itself."""
    traceparent = parse_traceparent(header)
    return {HEADER: traceparent, **payload} if traceparent and isinstance(payload, dict) else payload


def parse_queue(queue: str) -> tuple[str, dict[str, str]]:
    """Return the name of a queue, and the options after its question mark."""
    name, _, options = queue.partition("?")
    return name, dict(parse_qsl(options))
