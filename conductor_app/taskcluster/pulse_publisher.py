"""Publish Pulse messages about standalone tasks to topic exchanges, in the format of Taskcluster."""

import json
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..runs.models import PulseMessage
from ..settings import conf
from .commands import rows as pulse
from .commands.rows import exchange_name

if TYPE_CHECKING:
    from kombu import Connection, Producer

log = logging.getLogger(__name__)

BATCH_SIZE = 100
CONNECT_SECONDS = 5
ANSWER_SECONDS = 15


def publish_due_messages(is_stopping: Callable[[], bool] = lambda: False) -> int:
    """Publish all due messages. Returns the number of messages that the broker has confirmed."""
    count = 0
    while conf.taskcluster_amqp_url and not is_stopping() and (messages := pulse.take_due(BATCH_SIZE)):
        confirmed = _publish_all(messages)
        count += confirmed
        if confirmed < len(messages):
            break
    return count


def _publish_all(messages: Sequence[PulseMessage]) -> int:
    """Publish messages in order. Returns the number of messages that the broker has confirmed.

    The other messages are retried later.
    """
    from kombu import Producer
    from kombu.exceptions import KombuError

    confirmed = 0
    try:
        with _connect() as connection:
            connection.ensure_connection(max_retries=1, timeout=CONNECT_SECONDS)
            errors = (*connection.connection_errors, *connection.channel_errors, KombuError, OSError)
            try:
                producer = Producer(connection)
                for message in messages:
                    _publish_one(producer, message)
                    confirmed += 1
            except errors as error:
                _postpone(messages[confirmed:], error)
    except (KombuError, OSError, ValueError) as error:
        _postpone(messages[confirmed:], error)
    pulse.mark_delivered(messages[:confirmed])
    return confirmed


def _connect() -> "Connection":
    from kombu import Connection

    # Publisher confirms: a publish returns when the broker has the message.
    options = {"confirm_publish": True, "read_timeout": ANSWER_SECONDS, "write_timeout": ANSWER_SECONDS}
    return Connection(conf.taskcluster_amqp_url, connect_timeout=CONNECT_SECONDS, transport_options=options)


def _publish_one(producer: "Producer", message: PulseMessage) -> None:
    from kombu import Exchange

    # The broker also routes the message by the keys in this header.
    headers = {"CC": message.routes} if message.routes else {}
    topic = Exchange(exchange_name(message.name), type="topic", durable=True)
    producer.publish(
        json.dumps(message.payload).encode(),
        exchange=topic,
        routing_key=message.key,
        declare=[topic],
        headers=headers,
        content_type="application/json",
        content_encoding="utf-8",
        delivery_mode=2,
        timeout=CONNECT_SECONDS,
    )


def _postpone(messages: Sequence[PulseMessage], error: Exception) -> None:
    # The message of the error may contain the broker's address with its password, so only its type is logged.
    log.warning("pulse_messages_not_published", extra={"count": len(messages), "why": type(error).__name__})
    pulse.mark_failed(messages, type(error).__name__)
