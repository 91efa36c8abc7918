"""Publication of Pulse messages about standalone tasks to topic exchanges, as Taskcluster's listeners expect them."""

import json
import logging
from collections.abc import Callable, Sequence

from kombu import Connection, Exchange, Producer
from kombu.exceptions import KombuError

from .. import conf
from ..engine.standalone import outbox
from ..engine.standalone.pulse_messages import exchange_name
from ..models import PulseMessage

log = logging.getLogger(__name__)

BATCH_SIZE = 100
CONNECT_SECONDS = 5
ANSWER_SECONDS = 15


def publish_due_messages(is_stopping: Callable[[], bool] = lambda: False) -> int:
    """Publish all due messages. Returns how many the broker has confirmed."""
    count = 0
    while conf.taskcluster_amqp_url and not is_stopping() and (notices := outbox.take_due(BATCH_SIZE)):
        told = _publish_all(notices)
        count += told
        if told < len(notices):
            break
    return count


def _publish_all(notices: Sequence[PulseMessage]) -> int:
    """Publish messages in order. Returns how many the broker has confirmed; the others are retried later."""
    told = 0
    try:
        with _connect() as connection:
            connection.ensure_connection(max_retries=1, timeout=CONNECT_SECONDS)
            errors = (*connection.connection_errors, *connection.channel_errors, KombuError, OSError)
            try:
                producer = Producer(connection)
                for notice in notices:
                    _publish_one(producer, notice)
                    told += 1
            except errors as error:
                _postpone(notices[told:], error)
    except (KombuError, OSError, ValueError) as error:
        _postpone(notices[told:], error)
    outbox.mark_delivered(notices[:told])
    return told


def _connect() -> Connection:
    # With confirmation: a publish returns when the broker has the message, not when it was sent.
    options = {"confirm_publish": True, "read_timeout": ANSWER_SECONDS, "write_timeout": ANSWER_SECONDS}
    return Connection(conf.taskcluster_amqp_url, connect_timeout=CONNECT_SECONDS, transport_options=options)


def _publish_one(producer: Producer, notice: PulseMessage) -> None:
    # The broker itself copies a message to the keys in this header.
    headers = {"CC": notice.routes} if notice.routes else {}
    topic = Exchange(exchange_name(notice.name), type="topic", durable=True)
    producer.publish(
        json.dumps(notice.payload).encode(),
        exchange=topic,
        routing_key=notice.key,
        declare=[topic],
        headers=headers,
        content_type="application/json",
        content_encoding="utf-8",
        delivery_mode=2,
        timeout=CONNECT_SECONDS,
    )


def _postpone(notices: Sequence[PulseMessage], error: Exception) -> None:
    # The error's own words may hold the broker's address, and that a password.
    log.warning("notices_not_told", extra={"count": len(notices), "why": type(error).__name__})
    outbox.mark_failed(notices, type(error).__name__)
