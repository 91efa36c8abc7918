"""The Kafka provider. A sink is a topic."""

import json
import logging
import os
from collections.abc import Callable
from threading import Lock
from typing import Any

from ... import conf
from .provider import MessageHandler, Provider, SinkFailed, SinkUnavailable, import_library, parse_payload

MAX_MS = 10_000
LOOK_SECONDS = 0.5
GROUP = "conductor"
ID_HEADER = "message-id"
KAFKA_LOGGER = logging.getLogger("kafka")
"""Without this logger, librdkafka writes to standard error."""
NOT_NOW = (
    *("_MSG_TIMED_OUT", "_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_QUEUE_FULL"),
    *("NETWORK_EXCEPTION", "REQUEST_TIMED_OUT", "BROKER_NOT_AVAILABLE", "LEADER_NOT_AVAILABLE"),
    *("NOT_LEADER_FOR_PARTITION", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "KAFKA_STORAGE_ERROR"),
)
"""The names of the errors of a cluster that does not answer, or that no message can reach at present."""


class Kafka(Provider):
    """The configured cluster. A sink is written `kafka:topic`."""

    name, setting = "kafka", "EVENT_QUEUES_KAFKA_SERVERS"

    @property
    def is_configured(self) -> bool:
        return bool(conf.event_queues_kafka_servers)

    def publish(self, queue: str, message_id: str, payload: dict[str, Any]) -> None:
        self.require_configured()
        headers = [(ID_HEADER, message_id.encode())]
        send_message(
            conf.event_queues_kafka_servers, queue, json.dumps(payload).encode(), message_id.encode(), headers, self
        )

    def consume(self, queue: str, handle_message: MessageHandler, is_stopping: Callable[[], bool]) -> None:
        self.require_configured()
        consumer = import_library(self, "confluent_kafka").Consumer(
            {
                "bootstrap.servers": conf.event_queues_kafka_servers,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                # After this time, another process receives the messages of a crashed one.
                "session.timeout.ms": 10_000,
                "logger": KAFKA_LOGGER,
            }
        )
        try:
            consumer.subscribe([queue])
            while not is_stopping():
                self._handle_next(consumer, handle_message)
        finally:
            consumer.close()

    def _handle_next(self, consumer: Any, handle_message: MessageHandler) -> None:
        message = consumer.poll(LOOK_SECONDS)
        if message is None:
            return
        if message.error():
            if message.error().fatal():
                raise SinkFailed(f"kafka: {message.error().str()}")
            return
        handle_message(_message_id(message), parse_payload(message.value() or b""))
        # Commit after processing, so that the message is redelivered if this process crashes.
        consumer.commit(message, asynchronous=False)


def _message_id(message: Any) -> str:
    """Return the sender's id of a message, or its position, which is the same in every delivery."""
    for name, value in message.headers() or ():
        if name == ID_HEADER and value:
            return value.decode("utf-8", "replace")
    return f"{message.topic()}-{message.partition()}-{message.offset()}"


_lock = Lock()
_producers: dict[tuple[int, str], Any] = {}
MAX_PRODUCERS = 20


def send_message(
    servers: str,
    topic: str,
    value: bytes,
    key: bytes | None,
    headers: list[tuple[str, bytes]],
    provider: Provider,
    max_ms: int = MAX_MS,
) -> None:
    """Publish a message to a topic, and return when the cluster has it.

    Raises:
        SinkUnavailable: when the cluster does not confirm the message in time.
        SinkFailed: when it refuses the message.
    """
    kafka = import_library(provider, "confluent_kafka")
    outcome: list[Any] = []
    try:
        producer = _producer(kafka, servers)
        producer.produce(topic, value, key, headers=headers, on_delivery=lambda error, _: outcome.append(error))
        unconfirmed = producer.flush(max_ms / 1000)
    except BufferError as error:
        raise SinkUnavailable("kafka has not answered for a long time: too many messages wait.") from error
    except (kafka.KafkaException, ValueError, TypeError) as error:
        raise SinkFailed(f"kafka did not accept the message: {type(error).__name__}.") from error
    if not outcome and unconfirmed:
        raise SinkUnavailable(f"kafka did not answer within {max_ms / 1000:g} s.")
    if outcome and (refusal := outcome[0]) is not None:
        failure = SinkUnavailable if refusal.name() in NOT_NOW else SinkFailed
        raise failure(f"kafka did not accept the message: {refusal.str()}.")


def _producer(kafka: Any, servers: str) -> Any:
    """Return the producer of this process for a cluster. A forked process must not use that of its parent."""
    with _lock:
        place = (os.getpid(), servers)
        if place not in _producers:
            if len(_producers) >= MAX_PRODUCERS:
                _producers.clear()
            _producers[place] = kafka.Producer(
                {
                    "bootstrap.servers": servers,
                    "message.timeout.ms": MAX_MS,
                    "enable.idempotence": True,
                    "linger.ms": 0,
                    "logger": KAFKA_LOGGER,
                }
            )
        return _producers[place]
