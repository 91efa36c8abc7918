"""The NATS provider. A sink is a subject. NATS stores no messages: only current subscribers receive them."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from ... import conf
from .provider import (
    MessageHandler,
    Provider,
    SinkFailed,
    SinkUnavailable,
    import_library,
    message_id_of,
    parse_payload,
)

CONNECT_SECONDS = 5
LOOK_SECONDS = 0.5
GROUP = "conductor"
ID_HEADER = "Nats-Msg-Id"


class Nats(Provider):
    """The configured server. A sink is written `nats:subject`."""

    name, setting = "nats", "EVENT_QUEUES_NATS_URL"

    @property
    def is_configured(self) -> bool:
        return bool(conf.event_queues_nats_url)

    def publish(self, queue: str, message_id: str, payload: dict[str, Any]) -> None:
        self.require_configured()
        nats = import_library(self, "nats")
        try:
            asyncio.run(_publish(nats, queue, message_id, json.dumps(payload).encode()))
        except (nats.errors.MaxPayloadError, nats.errors.BadSubjectError, ValueError) as error:
            raise SinkFailed(f"nats did not accept the event: {type(error).__name__}.") from error
        except (nats.errors.Error, OSError, TimeoutError) as error:
            raise SinkUnavailable(f"nats cannot be reached: {type(error).__name__}.") from error

    def consume(self, queue: str, handle_message: MessageHandler, is_stopping: Callable[[], bool]) -> None:
        self.require_configured()
        asyncio.run(_consume(import_library(self, "nats"), queue, handle_message, is_stopping))


async def _connect(nats: Any) -> Any:
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
    return await asyncio.wait_for(connecting, CONNECT_SECONDS)


async def _publish(nats: Any, subject: str, message_id: str, content: bytes) -> None:
    connection = await _connect(nats)
    try:
        await connection.publish(subject, content, headers={ID_HEADER: message_id})
        await connection.flush(CONNECT_SECONDS)
    finally:
        await connection.close()


async def _consume(nats: Any, subject: str, handle_message: MessageHandler, is_stopping: Callable[[], bool]) -> None:
    connection = await _connect(nats)
    try:
        subscription = await connection.subscribe(subject, queue=GROUP)
        while not is_stopping():
            if connection.is_closed:
                raise SinkFailed("nats: the connection was lost.")
            try:
                message = await subscription.next_msg(LOOK_SECONDS)
            except nats.errors.TimeoutError:
                continue
            id = message_id_of((message.headers or {}).get(ID_HEADER))
            await asyncio.to_thread(handle_message, id, parse_payload(message.data))
    finally:
        if not connection.is_closed:
            await connection.close()
