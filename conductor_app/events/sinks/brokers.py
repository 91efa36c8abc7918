"""Events to AMQP and Redis and from them, over kombu."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.trace_context import HEADER
from ...settings import conf
from .base import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    LOOK_SECONDS,
    MessageHandler,
    Provider,
    SinkFailed,
    SinkUnavailable,
    import_library,
    message_id_of,
    parse_payload,
    parse_queue,
    trace_headers,
    with_trace_of,
)

if TYPE_CHECKING:
    from kombu import Connection, Exchange, Queue

PREFETCHED = 10
KOMBU_NOT_NOW = frozenset({"ClusterDownError", "MasterDownError", "OutOfMemoryError", "ReadOnlyError", "TryAgainError"})
"""Errors of Redis about its state. Its library classifies them like refusals of a command."""


class KombuProvider(Provider):
    """A broker at a configured address."""

    address: Callable[[], str]

    @property
    def is_configured(self) -> bool:
        return bool(self.address())

    def route(self, queue: str) -> "tuple[Exchange, str, Queue]":
        """Return the exchange and routing key to publish to, and the queue to consume."""
        kombu, (name, options) = import_library(self, "kombu"), parse_queue(queue)
        source = kombu.Queue(name, durable=options.get("durable", "true") != "false")
        return kombu.Exchange(""), name, source

    def open_connection(self) -> "Connection":
        self.require_configured()
        # Publisher confirms: a publish returns when the broker has the message. The timeouts cover a broker that hangs.
        amqp = {"confirm_publish": True, "read_timeout": ANSWER_SECONDS, "write_timeout": ANSWER_SECONDS}
        options = amqp if "amqp" in self.name else {"visibility_timeout": 60}
        kombu = import_library(self, "kombu")
        connection: Connection = kombu.Connection(
            self.address(), connect_timeout=CONNECT_SECONDS, transport_options=options
        )
        return connection

    def publish(self, queue: str, message_id: str, payload: dict[str, Any]) -> None:
        exchange, key, source = self.route(queue)
        connection = self.open_connection()
        amqp, kombu = import_library(self, "amqp.exceptions"), import_library(self, "kombu.exceptions")
        refusals = (
            *connection.channel_errors, amqp.IrrecoverableConnectionError, kombu.SerializationError, ValueError
        )  # fmt: skip
        failures = (*refusals, *connection.connection_errors, kombu.KombuError, amqp.MessageNacked, OSError)
        try:
            with connection:
                connection.ensure_connection(max_retries=1, timeout=CONNECT_SECONDS)
                self._put(connection, exchange, key, source, message_id, payload)
        except failures as error:
            name = type(error).__name__
            is_recoverable = isinstance(error, (amqp.RecoverableChannelError, amqp.InternalError))
            is_later_possible = is_recoverable or name in KOMBU_NOT_NOW
            if isinstance(error, refusals) and not is_later_possible:
                raise SinkFailed(f"{self.name} did not accept the event: {name}.") from error
            raise SinkUnavailable(f"{self.name} cannot be reached: {name}.") from error

    def _put(
        self,
        connection: "Connection",
        exchange: "Exchange",
        key: str,
        source: "Queue",
        message_id: str,
        payload: dict[str, Any],
    ) -> None:
        import_library(self, "kombu").Producer(connection).publish(
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

    def entities_to_declare(self, exchange: "Exchange", source: "Queue") -> list[Any]:
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
            kombu = import_library(self, "kombu")
            with kombu.Consumer(connection, [source], on_message=on_message, prefetch_count=PREFETCHED):
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

    def route(self, queue: str) -> "tuple[Exchange, str, Queue]":
        kombu, (name, options) = import_library(self, "kombu"), parse_queue(queue)
        is_durable = options.get("durable", "true") != "false"
        exchange = kombu.Exchange(name, type=options.get("exchangeType", "topic"), durable=is_durable)
        key = options.get("routingKey", "#" if exchange.type == "topic" else "")
        bound = kombu.Queue(options.get("bindQueueName", f"conductor.{name}"), exchange, key, durable=is_durable)
        return exchange, options.get("routingKey", ""), bound

    def entities_to_declare(self, exchange: "Exchange", source: "Queue") -> list[Any]:
        """Return only the exchange, because consumers bind their own queues."""
        return [exchange]


class Redis(KombuProvider):
    """A list of a Redis server, in the format of kombu and Celery, such as `redis:orders`."""

    name, setting = "redis", "EVENT_QUEUES_REDIS_URL"

    def address(self) -> str:
        return conf.event_queues_redis_url
