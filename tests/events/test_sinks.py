"""Events to other systems and from them, over the real brokers."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

import boto3
import nats
import pytest
from confluent_kafka import Producer
from kombu import Connection

from conductor_app.events.commands import handlers as event_handlers
from conductor_app.events.commands import intake as event_intake
from conductor_app.events.models import EventDelivery
from conductor_app.events.sinks import PROVIDERS, publish
from conductor_app.events.sinks.base import SinkFailed, SinkUnavailable
from conductor_app.events.workers import consumer
from conductor_app.events.workers.consumer import configured_queues, consume_events, has_configured_system
from conductor_app.system_tasks.registry import run_built_in_workers
from tests.builders import event, policy
from tests.clients.wait_until import eventually
from tests.free_port import free_port
from tests.scenario import Scenario, run_commit_hooks
from tests.telemetry.test_spans import CALLER

from . import brokers

pytestmark = [pytest.mark.slow, pytest.mark.one_database, pytest.mark.django_db(transaction=True)]

ACTION = {"action": "terminate_workflow", "terminate_workflow": {"workflowId": "${run}"}}
SETTINGS = {
    "amqp_queue": "AMQP_URL",
    "amqp_exchange": "AMQP_URL",
    "redis": "REDIS_URL",
    "kafka": "KAFKA_SERVERS",
    "sqs": "SQS_URL",
    "nats": "NATS_URL",
    "jsm": "NATS_URL",
}


@pytest.fixture(scope="module")
def addresses(tmp_path_factory) -> Iterator[Callable[[str], str]]:
    """Yield a function that returns the address of a broker, which starts on first use."""
    from contextlib import ExitStack

    makers = {
        "AMQP_URL": lambda: brokers.rabbitmq(tmp_path_factory.mktemp("rabbitmq")),
        "REDIS_URL": brokers.redis,
        "KAFKA_SERVERS": brokers.kafka,
        "SQS_URL": brokers.aws,
        "NATS_URL": lambda: brokers.nats(free_port(), tmp_path_factory.mktemp("nats")),
    }
    with ExitStack() as started:
        known: dict[str, str] = {}

        def address(name: str) -> str:
            if name not in known:
                known[name] = started.enter_context(makers[name]())
            return known[name]

        yield address


@pytest.fixture(autouse=True)
def aws_credentials(monkeypatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")


@pytest.fixture
def configured(settings, addresses) -> Callable[[str], None]:
    def configure(provider: str) -> None:
        name = SETTINGS[provider]
        setattr(settings, f"CONDUCTOR_EVENT_QUEUES_{name}", addresses(name))

    return configure


def handle(sink: str) -> None:
    event_handlers.create_handlers([{"name": sink, "event": sink, "active": True, "actions": [ACTION]}], "ann")


@contextmanager
def listening() -> Iterator[None]:
    stopping = Event()
    thread = Thread(target=consume_events, args=(stopping,))
    thread.start()
    try:
        yield
    finally:
        began = time.monotonic()
        stopping.set()
        thread.join()
        assert time.monotonic() - began < 20


def received_events(sink: str) -> list[tuple[str, Any]]:
    return list(EventDelivery.objects.filter(event=sink).order_by("id").values_list("message_id", "payload"))


def publish_until_heard(sink: str) -> None:
    """Wait until a listener is connected: a new queue or subscription receives only later messages."""
    ids = (f"before{number}" for number in itertools.count())

    def publish_and_read() -> list[tuple[str, Any]]:
        # A new stream may not answer yet: the outbox would send the message again.
        with suppress(SinkUnavailable):
            publish(sink, next(ids), {"n": 0})
        return received_events(sink)

    eventually(publish_and_read, 60)


@pytest.mark.parametrize("provider", SETTINGS)
def test_a_message_published_to_a_broker_is_received_once(configured, provider):
    configured(provider)
    sink = f"{provider}:orders"
    handle(sink)

    with listening():
        publish_until_heard(sink)
        publish(sink, "m1", {"n": 1})
        publish(sink, "m1", {"n": 1})
        publish(sink, "m2", {"n": 2})
        eventually(lambda: {"m1", "m2"} <= {id for id, _ in received_events(sink)}, 60)

    assert [payload for id, payload in received_events(sink) if id == "m1"] == [{"n": 1}]


def send_with_trace(provider: str, address: str) -> None:
    """Send a message with the header `traceparent`, as another program does."""
    if provider == "kafka":
        producer = Producer({"bootstrap.servers": address})
        producer.produce("traced", b'{"n": 1}', headers=[("traceparent", CALLER.encode())])
        producer.flush(10)
    elif provider in ("nats", "jsm"):
        asyncio.run(send_to_nats(address))
    elif provider == "sqs":
        client = boto3.client("sqs", endpoint_url=address, region_name="us-east-1")
        header = {"traceparent": {"DataType": "String", "StringValue": CALLER}}
        url = client.create_queue(QueueName="traced")["QueueUrl"]
        client.send_message(QueueUrl=url, MessageBody='{"n": 1}', MessageAttributes=header)
    else:
        with Connection(address) as connection:
            headers = {"traceparent": CALLER}
            connection.Producer().publish({"n": 1}, routing_key="traced", headers=headers, serializer="json")


async def send_to_nats(address: str) -> None:
    client = await nats.connect(address)
    await client.publish("traced", b'{"n": 1}', headers={"traceparent": CALLER})
    await client.drain()


@pytest.mark.parametrize("provider", [provider for provider in SETTINGS if provider != "amqp_exchange"])
def test_the_trace_of_a_message_is_a_member_of_its_payload(configured, addresses, provider):
    configured(provider)
    handle(f"{provider}:traced")

    with listening():
        sink, address = f"{provider}:traced", addresses(SETTINGS[provider])
        eventually(lambda: send_with_trace(provider, address) or received_events(sink), 60)

    assert received_events(f"{provider}:traced")[0][1] == {"n": 1, "traceparent": CALLER}


def test_an_event_above_the_limit_is_refused_and_blocks_no_later_one(configured, settings):
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_MAX_BYTES = 20_000
    configured("redis")
    handle("redis:large")

    with listening():
        publish_until_heard("redis:large")
        publish("redis:large", "m1", {"text": "x" * 100_000})
        publish("redis:large", "m2", {"n": 2})
        eventually(lambda: "m2" in {id for id, _ in received_events("redis:large")}, 20)

    assert "m1" not in {id for id, _ in received_events("redis:large")}


@pytest.mark.parametrize("provider", SETTINGS)
def test_an_event_task_is_published_by_a_built_in_worker(configured, provider, clock):
    configured(provider)
    scenario = Scenario(clock, event("tell", f"{provider}:told", inputs={"n": 1}))

    with run_commit_hooks():
        run_built_in_workers()

    attempt = scenario.task("tell")
    assert scenario.statuses == {"tell": "COMPLETED"}, attempt.reason
    assert attempt.output == {
        "n": 1,
        "sink": f"{provider}:told",
        "asyncComplete": False,
        "workflowInstanceId": scenario.id,
        "workflowType": "order",
        "workflowVersion": 1,
        "correlationId": None,
        "taskToDomain": {},
        "event_produced": f"{provider}:told",
    }


def test_with_async_complete_a_message_is_published_once_and_the_task_waits(configured, clock):
    configured("redis")
    scenario = Scenario(clock, event("tell", "redis:told", asyncComplete=True))

    for _ in range(3):
        with run_commit_hooks():
            run_built_in_workers()
        scenario.later(600)

    assert scenario.statuses == {"tell": "IN_PROGRESS"}
    assert scenario.task("tell").poll_count == 1
    scenario.reports("tell", done=True)
    assert (scenario.status, scenario.task("tell").output) == ("COMPLETED", {"done": True})


@pytest.mark.parametrize("provider", ["amqp_queue", "redis", "kafka", "sqs"])
def test_a_message_that_could_not_be_processed_is_redelivered(configured, provider, monkeypatch):
    configured(provider)
    sink = f"{provider}:again"
    handle(sink)
    publish(sink, "m", {"n": 1})
    refused = []
    receive = event_intake.receive_event

    def breaks_at_first(*args, **options):
        if not refused:
            refused.append(args)
            raise OSError("the database went away")
        return receive(*args, **options)

    monkeypatch.setattr(consumer, "receive_event", breaks_at_first)

    with listening():
        eventually(lambda: received_events(sink), 60)

    assert refused
    assert received_events(sink) == [("m", {"n": 1})]


def test_messages_of_a_restarted_broker_are_received(settings, tmp_path):
    port = free_port()
    settings.CONDUCTOR_EVENT_QUEUES_NATS_URL = f"nats://127.0.0.1:{port}"
    handle("nats:orders")

    def is_heard(id: str) -> bool:
        try:
            publish("nats:orders", id, {})
        except SinkFailed:
            return False
        return id in [known for known, _ in received_events("nats:orders")]

    with listening():
        for id in ("before", "after"):
            with brokers.nats(port, tmp_path):
                eventually(lambda: is_heard(id), 60)  # noqa: B023


@pytest.mark.parametrize("provider", SETTINGS)
def test_an_unconfigured_broker_fails_the_task_and_names_the_setting(clock, provider):
    scenario = Scenario(clock, event("tell", f"{provider}:told"))

    with run_commit_hooks():
        run_built_in_workers()

    assert scenario.statuses == {"tell": "FAILED"}
    assert f"EVENT_QUEUES_{SETTINGS[provider]}" in scenario.task("tell").reason


@pytest.mark.parametrize("provider", ["amqp_queue", "redis", "nats", "jsm"])
def test_a_task_waits_for_a_broker_that_is_away_and_its_reason_has_no_password(clock, settings, provider):
    scheme = {"amqp_queue": "amqp", "jsm": "nats"}.get(provider, provider)
    address = f"{scheme}://me:secret@127.0.0.1:{free_port()}"
    setattr(settings, f"CONDUCTOR_EVENT_QUEUES_{SETTINGS[provider]}", address)
    scenario = Scenario(clock, event("tell", f"{provider}:told"))

    with run_commit_hooks():
        run_built_in_workers()

    attempt = scenario.task("tell")
    assert (scenario.status, attempt.status, attempt.callback_ms) == ("RUNNING", "PENDING", 1000)
    assert f"{provider} cannot be reached" in attempt.reason
    assert "is tried again after 1 s" in attempt.reason
    assert "secret" not in attempt.reason


def test_a_task_is_published_when_its_broker_is_back(clock, settings, tmp_path):
    port = free_port()
    settings.CONDUCTOR_EVENT_QUEUES_NATS_URL = f"nats://127.0.0.1:{port}"
    scenario = Scenario(clock, event("tell", "nats:told"))
    delays = []
    for _ in range(3):
        with run_commit_hooks():
            run_built_in_workers()
        delays.append(scenario.task("tell").callback_ms)
        scenario.later(60)

    with brokers.nats(port, tmp_path), run_commit_hooks():
        run_built_in_workers()

    assert delays == [1000, 2000, 4000]
    assert scenario.status == "COMPLETED"


def test_a_task_waits_for_its_broker_no_longer_than_its_timeout(clock, settings):
    settings.CONDUCTOR_EVENT_QUEUES_NATS_URL = f"nats://127.0.0.1:{free_port()}"
    limits = policy("tell", total_seconds=100)
    scenario = Scenario(clock, event("tell", "nats:told", policy=limits))
    with run_commit_hooks():
        run_built_in_workers()

    scenario.later(101)

    assert scenario.statuses == {"tell": "TIMED_OUT"}


@pytest.mark.parametrize(
    ("provider", "sink"),
    [
        ("amqp_exchange", "amqp_exchange:bills?exchangeType=fanout"),
        ("nats", "nats:not a subject"),
        ("jsm", "jsm:not a subject"),
        ("sqs", "sqs:large"),
    ],
)
def test_a_message_that_its_broker_refuses_fails_the_task(configured, clock, provider, sink):
    configured(provider)
    if provider == "amqp_exchange":
        publish("amqp_exchange:bills?exchangeType=topic", "m", {})
    scenario = Scenario(clock, event("tell", sink, inputs={"text": "x" * 2_000_000}))

    with run_commit_hooks():
        run_built_in_workers()

    assert scenario.statuses == {"tell": "FAILED"}
    assert f"{provider} did not accept the event" in scenario.task("tell").reason


def test_only_active_and_configured_queues_are_subscribed(settings):
    settings.CONDUCTOR_EVENT_QUEUES_REDIS_URL = "redis://127.0.0.1:1"
    for sink in ("redis:a", "kafka:b", "conductor:c:d", "unknown:e", "redis:"):
        handle(sink)
    event_handlers.update_handler({"name": "redis:a", "event": "redis:f", "active": True, "actions": [ACTION]}, "ann")

    assert list(configured_queues()) == ["redis:f"]
    assert has_configured_system()
    settings.CONDUCTOR_EVENT_QUEUES_REDIS_URL = ""
    assert not has_configured_system()


def test_a_library_that_is_not_installed_is_named(monkeypatch, settings):
    import sys

    settings.CONDUCTOR_EVENT_QUEUES_KAFKA_SERVERS = "one:9092"
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    with pytest.raises(SinkFailed, match=r"confluent_kafka. Install conductor-app with its extra `events`"):
        PROVIDERS["kafka"].publish("orders", "m", {})
