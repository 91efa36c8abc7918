"""Events to NATS and from it: subjects, and streams of JetStream."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ...core.trace_context import HEADER
from ...settings import conf
from .base import (
    CONNECT_SECONDS,
    GROUP,
    LOOK_SECONDS,
    MessageHandler,
    Provider,
    SinkFailed,
    SinkUnavailable,
    import_library,
    message_id_of,
    parse_payload,
    trace_headers,
    with_trace_of,
)

NATS_ID_HEADER = "Nats-Msg-Id"
ACK_SECONDS = 30
"""After this time without a sign of its receiver, a message of a stream is redelivered."""
CONSUMER_NAME = str.maketrans({"_": "__", ".": "_", "*": "%2A", ">": "%3E", "%": "%25"})
"""How a subject is written in the name of a consumer, which has no dots and wildcards."""


class Nats(Provider):
    """The configured server. A sink is written `nats:subject`."""

    name, setting = "nats", "EVENT_QUEUES_NATS_URL"

    def publish(self, queue: str, message_id: str, payload: dict[str, Any]) -> None:
        self.require_configured()
        nats = import_library(self, "nats")
        refusals = (nats.errors.MaxPayloadError, nats.errors.BadSubjectError, nats.js.errors.BadRequestError)
        headers = {NATS_ID_HEADER: message_id, **trace_headers(payload)}
        try:
            asyncio.run(self._send(nats, queue, json.dumps(payload).encode(), headers))
        except (*refusals, ValueError) as error:
            raise SinkFailed(f"{self.name} did not accept the event: {type(error).__name__}.") from error
        except (nats.errors.Error, OSError, TimeoutError) as error:
            raise SinkUnavailable(f"{self.name} cannot be reached: {type(error).__name__}.") from error

    def consume(self, queue: str, handle_message: MessageHandler, is_stopping: Callable[[], bool]) -> None:
        self.require_configured()
        asyncio.run(self._receive(import_library(self, "nats"), queue, handle_message, is_stopping))

    async def _send(self, nats: Any, queue: str, body: bytes, headers: dict[str, str]) -> None:
        async with connect(nats) as connection:
            await connection.publish(queue, body, headers=headers)
            await connection.flush(CONNECT_SECONDS)

    async def _receive(
        self, nats: Any, queue: str, handle_message: MessageHandler, is_stopping: Callable[[], bool]
    ) -> None:
        async with connect(nats) as connection:
            subscription = await connection.subscribe(queue, queue=GROUP)
            while not is_stopping():
                _require_open(connection)
                try:
                    message = await subscription.next_msg(LOOK_SECONDS)
                except nats.errors.TimeoutError:
                    continue
                id = message_id_of(_header(message, NATS_ID_HEADER))
                await asyncio.to_thread(handle_message, id, _payload(message))


class JetStream(Nats):
    """A stream of the configured server. A sink is written `jsm:subject`, or `jsm:subject:group`.

    Each group has a durable consumer. It receives the messages that are sent after its creation, those included that
    are sent while no process listens. The stream that contains the subject is used; without one, it is created.
    """

    name = "jsm"

    async def _send(self, nats: Any, queue: str, body: bytes, headers: dict[str, str]) -> None:
        subject, _, _ = queue.partition(":")
        async with connect(nats) as connection:
            streams = connection.jetstream(timeout=CONNECT_SECONDS)
            try:
                await streams.publish(subject, body, headers=headers)
            except nats.js.errors.NoStreamResponseError:
                await _find_stream(nats, streams, subject)
                await streams.publish(subject, body, headers=headers)

    async def _receive(
        self, nats: Any, queue: str, handle_message: MessageHandler, is_stopping: Callable[[], bool]
    ) -> None:
        subject, _, group = queue.partition(":")
        new_only = nats.js.api.ConsumerConfig(deliver_policy=nats.js.api.DeliverPolicy.NEW, ack_wait=ACK_SECONDS)
        async with connect(nats) as connection:
            streams = connection.jetstream(timeout=CONNECT_SECONDS)
            stream = await _find_stream(nats, streams, subject)
            consumer = f"{group or GROUP}-{subject.translate(CONSUMER_NAME)}"
            subscription = await streams.pull_subscribe(subject, durable=consumer, stream=stream, config=new_only)
            while not is_stopping():
                _require_open(connection)
                try:
                    messages = await subscription.fetch(1, LOOK_SECONDS)
                except nats.errors.TimeoutError:
                    continue
                await _handle_delivery(messages[0], handle_message)


async def _handle_delivery(message: Any, handle_message: MessageHandler) -> None:
    """Acknowledge a message after its processing, and extend its time meanwhile."""
    position = message.metadata
    id = _header(message, NATS_ID_HEADER) or f"{position.stream}-{position.sequence.stream}"
    handling = asyncio.create_task(asyncio.to_thread(handle_message, id, _payload(message)))
    while not (await asyncio.wait({handling}, timeout=ACK_SECONDS / 3))[0]:
        await message.in_progress()
    if handling.exception():
        await message.nak()
    await handling
    await message.ack_sync(CONNECT_SECONDS)


async def _find_stream(nats: Any, streams: Any, subject: str) -> str:
    """Return the name of the stream that contains the subject. A new one has the name that Conductor gives it."""
    try:
        return await streams.find_stream_name_by_subject(subject)
    except nats.js.errors.NotFoundError:
        name = subject.replace(".", "_").replace("*", "ANY").replace(">", "ALL").upper()
        return (await streams.add_stream(name=name, subjects=[subject])).config.name


@asynccontextmanager
async def connect(nats: Any) -> AsyncIterator[Any]:
    """Connect to the configured server until the end of the block."""

    # The caller handles errors. The log lines of the library would contain the address.
    async def quiet(error: Exception) -> None:
        return

    connecting = nats.connect(
        conf.event_queues_nats_url,
        connect_timeout=CONNECT_SECONDS,
        allow_reconnect=False,
        max_reconnect_attempts=0,
        error_cb=quiet,
    )
    connection = await asyncio.wait_for(connecting, CONNECT_SECONDS)
    try:
        yield connection
    finally:
        await connection.close()


def _require_open(connection: Any) -> None:
    if connection.is_closed:
        raise SinkFailed("nats: the connection was lost.")


def _header(message: Any, name: str) -> str | None:
    return (message.headers or {}).get(name)


def _payload(message: Any) -> Any:
    return with_trace_of(parse_payload(message.data), _header(message, HEADER))
