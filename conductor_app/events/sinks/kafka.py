"""Events to Kafka and from it, and messages of KAFKA_PUBLISH tasks."""

import json
import logging
import os
from collections.abc import Callable
from threading import Lock
from typing import Any

from ...core.trace_context import HEADER
from ...settings import conf
from .base import (
    GROUP,
    LOOK_SECONDS,
    MessageHandler,
    Provider,
    SinkFailed,
    SinkUnavailable,
    import_library,
    parse_payload,
    trace_headers,
    with_trace_of,
)

MAX_MS = 10_000
KAFKA_ID_HEADER = "message-id"
KAFKA_LOGGER = logging.getLogger("kafka")
"""Without this logger, librdkafka writes to standard error."""
KAFKA_NOT_NOW = (
    *("_MSG_TIMED_OUT", "_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_QUEUE_FULL"),
    *("NETWORK_EXCEPTION", "REQUEST_TIMED_OUT", "BROKER_NOT_AVAILABLE", "LEADER_NOT_AVAILABLE"),
    *("NOT_LEADER_FOR_PARTITION", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "KAFKA_STORAGE_ERROR"),
)
"""The names of the errors of a cluster that does not answer, or that no message can reach at present."""
_lock = Lock()
_producers: dict[tuple[int, str], Any] = {}
MAX_PRODUCERS = 20


class Kafka(Provider):
    """The configured cluster. A sink is written `kafka:topic`."""

    name, setting = "kafka", "EVENT_QUEUES_KAFKA_SERVERS"

    def publish(self, queue: str, message_id: str, payload: dict[str, Any]) -> None:
        self.require_configured()
        traces = [(name, value.encode()) for name, value in trace_headers(payload).items()]
        headers = [(KAFKA_ID_HEADER, message_id.encode()), *traces]
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
        traceparent = dict(message.headers() or ()).get(HEADER) or b""
        payload = with_trace_of(parse_payload(message.value() or b""), traceparent.decode("utf-8", "replace"))
        handle_message(_message_id(message), payload)
        # Commit after processing, so that the message is redelivered if this process crashes.
        consumer.commit(message, asynchronous=False)


def kafka_clusters() -> frozenset[str]:
    """Return what `bootStrapServers` may be: the names of the configured clusters, and the servers of each."""
    default = conf.event_queues_kafka_servers
    clusters = conf.kafka_clusters
    return frozenset((*clusters, *clusters.values(), *([default] if default else [])))


def find_kafka_servers(text: str) -> str:
    """Return the servers of the configured cluster with this name or these servers; without a text, of that for events.

    A client trusts the brokers that a cluster names as its own, whatever their addresses. So only clusters that the
    operator has configured are permitted.

    Raises:
        SinkFailed: when no such cluster is configured.
    """
    if not text and conf.event_queues_kafka_servers:
        return conf.event_queues_kafka_servers
    if text in conf.kafka_clusters:
        return conf.kafka_clusters[text]
    servers = ",".join(each.strip() for each in text.split(","))
    if text and servers in kafka_clusters():
        return servers
    named = f"`{text[:200]}` is not a configured Kafka cluster" if text else "bootStrapServers is missing"
    raise SinkFailed(f"{named}. The operator configures clusters with KAFKA_CLUSTERS or EVENT_QUEUES_KAFKA_SERVERS.")


def _message_id(message: Any) -> str:
    """Return the sender's id of a message, or its position, which is the same in every delivery."""
    for name, value in message.headers() or ():
        if name == KAFKA_ID_HEADER and value:
            return value.decode("utf-8", "replace")
    return f"{message.topic()}-{message.partition()}-{message.offset()}"


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
        failure = SinkUnavailable if refusal.name() in KAFKA_NOT_NOW else SinkFailed
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
