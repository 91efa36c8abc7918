"""The providers of sinks, to which events are published, and of queues, from which they are received."""

import asyncio
import json
import logging
import os
import uuid
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl

from amqp.exceptions import InternalError, IrrecoverableConnectionError, MessageNacked, RecoverableChannelError
from kombu import Connection, Consumer, Exchange, Producer, Queue
from kombu.exceptions import KombuError, SerializationError

from ..core.events import INTERNAL
from ..core.trace_context import HEADER, parse_traceparent
from ..settings import conf
from .commands.intake import publish_internal_event

MessageHandler = Callable[[str, Any], None]
"""Processes an event. Arguments: its id, which is the same in repeated deliveries, and its payload."""
MAX_MS = 10_000
LOOK_SECONDS = 0.5
GROUP = "conductor"
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
CONNECT_SECONDS = 5
ANSWER_SECONDS = 15
PREFETCHED = 10
KOMBU_NOT_NOW = frozenset({"ClusterDownError", "MasterDownError", "OutOfMemoryError", "ReadOnlyError", "TryAgainError"})
"""Errors of Redis about its state. Its library classifies them like refusals of a command."""
NATS_ID_HEADER = "Nats-Msg-Id"


def publish(sink: str, message_id: str, payload: dict[str, Any]) -> None:
    """Publish an event to a sink, `provider:queue`.

    Raises:
        SinkUnavailable: when the sink cannot be reached.
        SinkFailed: when it is unknown or refuses the event. The message is readable for users.
    """
    name, _, queue = sink.partition(":")
    provider = PROVIDERS.get(name)
    if provider is None:
        raise SinkFailed(f"The sink '{sink[:200]}' has an unknown provider. Use one of: {', '.join(PROVIDERS)}.")
    if not queue:
        raise SinkFailed(f"The sink '{sink[:200]}' has no queue. Use the form {name}:orders.")
    provider.publish(queue, message_id, payload)


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
        """Return True if the operator has configured the address."""
        return True

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
    import importlib

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


class Internal(Provider):
    """Sink for the event handlers of this server."""

    name = INTERNAL

    def publish(self, queue: str, message_id: str, payload: dict[str, Any]) -> None:
        publish_internal_event(f"{INTERNAL}:{queue}", message_id, payload)


class Kafka(Provider):
    """The configured cluster. A sink is written `kafka:topic`."""

    name, setting = "kafka", "EVENT_QUEUES_KAFKA_SERVERS"

    @property
    def is_configured(self) -> bool:
        return bool(conf.event_queues_kafka_servers)

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


class KombuProvider(Provider):
    """A broker at a configured address."""

    address: Callable[[], str]

    @property
    def is_configured(self) -> bool:
        return bool(self.address())

    def route(self, queue: str) -> tuple[Exchange, str, Queue]:
        """Return the exchange and routing key to publish to, and the queue to consume."""
        name, options = parse_queue(queue)
        source = Queue(name, durable=options.get("durable", "true") != "false")
        return Exchange(""), name, source

    def open_connection(self) -> Connection:
        self.require_configured()
        # Publisher confirms: a publish returns when the broker has the message. The timeouts cover a broker that hangs.
        amqp = {"confirm_publish": True, "read_timeout": ANSWER_SECONDS, "write_timeout": ANSWER_SECONDS}
        options = amqp if "amqp" in self.name else {"visibility_timeout": 60}
        return Connection(self.address(), connect_timeout=CONNECT_SECONDS, transport_options=options)

    def publish(self, queue: str, message_id: str, payload: dict[str, Any]) -> None:
        exchange, key, source = self.route(queue)
        connection = self.open_connection()
        refusals = (*connection.channel_errors, IrrecoverableConnectionError, SerializationError, ValueError)
        try:
            with connection:
                connection.ensure_connection(max_retries=1, timeout=CONNECT_SECONDS)
                self._put(connection, exchange, key, source, message_id, payload)
        except (*refusals, *connection.connection_errors, KombuError, MessageNacked, OSError) as error:
            name = type(error).__name__
            is_later_possible = isinstance(error, RecoverableChannelError | InternalError) or name in KOMBU_NOT_NOW
            if isinstance(error, refusals) and not is_later_possible:
                raise SinkFailed(f"{self.name} did not accept the event: {name}.") from error
            raise SinkUnavailable(f"{self.name} cannot be reached: {name}.") from error

    def _put(
        self,
        connection: Connection,
        exchange: Exchange,
        key: str,
        source: Queue,
        message_id: str,
        payload: dict[str, Any],
    ) -> None:
        Producer(connection).publish(
            json.dumps(payload).encode(),
            exchange=exchange,
            routing_key=key,
            declare=self.entities_to_declare(exchange, source),
            content_type="application/json",
            content_encoding="utf-8",
            message_id=message_id,
            headers=trace_headers(payload),
            delivery_mode=2,
            timeout=CONNECT_SECONDS,
        )

    def entities_to_declare(self, exchange: Exchange, source: Queue) -> list[Any]:
        """Return the entities to declare before a message is published: the queue."""
        return [source]

    def consume(self, queue: str, handle_message: MessageHandler, is_stopping: Callable[[], bool]) -> None:
        _, _, source = self.route(queue)

        def on_message(message: Any) -> None:
            id = message.properties.get("message_id") or message.headers.get("id")
            payload = with_trace_of(parse_payload(message.body), message.headers.get(HEADER))
            handle_message(message_id_of(id), payload)
            message.ack()

        with self.open_connection() as connection:
            connection.ensure_connection(max_retries=1, timeout=CONNECT_SECONDS)
            # Unacknowledged messages are redelivered: by AMQP when the connection ends, by Redis after a timeout.
            with Consumer(connection, [source], on_message=on_message, prefetch_count=PREFETCHED):
                while not is_stopping():
                    try:
                        connection.drain_events(timeout=LOOK_SECONDS)
                    except TimeoutError:
                        connection.heartbeat_check() if connection.heartbeat else None


class AmqpQueue(KombuProvider):
    """A queue of an AMQP broker, such as `amqp_queue:orders?durable=true`."""

    name, setting = "amqp_queue", "EVENT_QUEUES_AMQP_URL"

    def address(self) -> str:
        return conf.event_queues_amqp_url


class AmqpExchange(AmqpQueue):
    """An exchange of an AMQP broker.

    For example `amqp_exchange:orders?exchangeType=topic&routingKey=paid&bindQueueName=ours`.
    """

    name = "amqp_exchange"

    def route(self, queue: str) -> tuple[Exchange, str, Queue]:
        name, options = parse_queue(queue)
        is_durable = options.get("durable", "true") != "false"
        exchange = Exchange(name, type=options.get("exchangeType", "topic"), durable=is_durable)
        key = options.get("routingKey", "#" if exchange.type == "topic" else "")
        bound = Queue(options.get("bindQueueName", f"conductor.{name}"), exchange, key, durable=is_durable)
        return exchange, options.get("routingKey", ""), bound

    def entities_to_declare(self, exchange: Exchange, source: Queue) -> list[Any]:
        """Return only the exchange, because consumers bind their own queues."""
        return [exchange]


class Redis(KombuProvider):
    """A list of a Redis server, in the format of kombu and Celery, such as `redis:orders`."""

    name, setting = "redis", "EVENT_QUEUES_REDIS_URL"

    def address(self) -> str:
        return conf.event_queues_redis_url


def parse_queue(queue: str) -> tuple[str, dict[str, str]]:
    """Return the name of a queue, and the options after its question mark."""
    name, _, options = queue.partition("?")
    return name, dict(parse_qsl(options))


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
            asyncio.run(_publish(nats, queue, message_id, payload))
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


async def _publish(nats: Any, subject: str, message_id: str, payload: dict[str, Any]) -> None:
    connection = await _connect(nats)
    try:
        headers = {NATS_ID_HEADER: message_id, **trace_headers(payload)}
        await connection.publish(subject, json.dumps(payload).encode(), headers=headers)
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
            headers = message.headers or {}
            payload = with_trace_of(parse_payload(message.data), headers.get(HEADER))
            await asyncio.to_thread(handle_message, message_id_of(headers.get(NATS_ID_HEADER)), payload)
    finally:
        if not connection.is_closed:
            await connection.close()


PROVIDERS: dict[str, Provider] = {
    provider.name: provider for provider in (Internal(), AmqpQueue(), AmqpExchange(), Redis(), Kafka(), Nats())
}
