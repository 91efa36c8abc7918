"""KAFKA_PUBLISH tasks, and EVENT tasks for other systems."""

import json
from typing import Any

from ..core.events import event_name
from ..core.expressions import field_text
from ..core.primitives import JsonValue
from ..core.step_types.worker_tasks import EventStep, KafkaPublishStep
from ..core.trace_context import HEADER
from ..events.sinks import PROVIDERS, publish
from ..events.sinks.base import SinkFailed, SinkUnavailable
from ..events.sinks.kafka import find_kafka_servers, send_message
from ..tasks.store import ClaimedAttempt
from .registry import BuiltInWorker, WorkResult, with_trace

SHORTEST_MS, MAX_MS = 5_000, 60_000


class InvalidKafkaRequest(Exception):
    """The input of the task does not describe a valid message."""


class KafkaPublish(BuiltInWorker):
    """Publishes `kafka_request.value` to a topic of a configured cluster (execution §8.22)."""

    type = KafkaPublishStep.type

    def inputs_of(self, attempt: ClaimedAttempt) -> dict[str, Any]:
        """Return the input. The message has the trace of the run as a header, unless the step sets that header."""
        inputs = super().inputs_of(attempt)
        request = inputs.get("kafka_request")
        return inputs | {"kafka_request": with_trace(request, attempt)} if isinstance(request, dict) else inputs

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Publish the message. A failure is a result with a readable message, not an exception."""
        try:
            request = inputs.get("kafka_request")
            if not isinstance(request, dict):
                raise InvalidKafkaRequest("kafka_request is missing: it needs topic and value")
            self._send(request)
        except InvalidKafkaRequest as error:
            return WorkResult("FAILED", {}, f"Failed to publish to Kafka: {error}.")
        except SinkFailed as error:
            return WorkResult("FAILED", {}, f"Failed to publish to Kafka: {error}")
        return WorkResult("COMPLETED")

    def _send(self, request: dict[str, Any]) -> None:
        servers = request.get("bootStrapServers")
        if not isinstance(servers, str | None):
            raise InvalidKafkaRequest("bootStrapServers must be a text")
        topic = request.get("topic")
        if not isinstance(topic, str) or not topic:
            raise InvalidKafkaRequest("topic is missing")
        if request.get("value") is None:
            raise InvalidKafkaRequest("value is missing")
        key = request.get("key")
        headers = {} if request.get("headers") is None else request["headers"]
        if not isinstance(headers, dict):
            raise InvalidKafkaRequest("headers must be an object")
        send_message(
            find_kafka_servers(servers or ""),
            topic,
            encode_value(request["value"]),
            None if key is None else encode_value(key),
            [(str(name), encode_value(value)) for name, value in headers.items()],
            PROVIDERS["kafka"],
            _wait_ms(request),
        )


class EventWorker(BuiltInWorker):
    """Publishes the input of the task to its sink, once (execution §8.15)."""

    type = EventStep.type

    def inputs_of(self, attempt: ClaimedAttempt) -> dict[str, Any]:
        """Return the event. Its payload becomes the output of the task, so secrets are not resolved."""
        run, input = attempt.run, attempt.input
        event = event_name(field_text(input.get("sink")), run.name, attempt.task.ref)
        run_facts = {
            "workflowInstanceId": run.id,
            "workflowType": run.name,
            "workflowVersion": run.version,
            "correlationId": run.correlation_id or None,
            "taskToDomain": run.domains,
        }
        if attempt.traceparent:
            run_facts[HEADER] = attempt.traceparent
        return {"id": attempt.id, "event": event, "payload": {**input, **run_facts, "event_produced": event}}

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Publish the event. With asyncComplete the task stays open until a client completes it.

        Raises:
            SinkUnavailable: when the broker does not answer. The task waits, within its timeouts.
        """
        payload = inputs["payload"]
        try:
            publish(inputs["event"], inputs["id"], payload)
        except SinkUnavailable:
            raise
        except SinkFailed as failed:
            return WorkResult("FAILED", payload, str(failed))
        return WorkResult("IN_PROGRESS" if payload.get("asyncComplete") is True else "COMPLETED", payload)


def encode_value(value: JsonValue) -> bytes:
    """Return a value for Kafka: text unchanged, everything else as JSON."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace")


def _wait_ms(request: dict[str, Any]) -> int:
    """Return the timeout in milliseconds, of at least SHORTEST_MS: a first connection may take that long."""
    try:
        requested_ms = int(request.get("requestTimeoutMs") or 0) + int(request.get("maxBlockMs") or 0)
    except (TypeError, ValueError, OverflowError):
        raise InvalidKafkaRequest("requestTimeoutMs and maxBlockMs must be numbers of milliseconds") from None
    return min(max(requested_ms, SHORTEST_MS), MAX_MS)
