"""What streams of a real NATS server add to subjects: messages wait for their receivers, and are redelivered."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import nats
import pytest

from conductor_app.events.sinks import PROVIDERS, publish
from conductor_app.events.sinks import nats as jetstream
from conductor_app.events.sinks.base import SinkUnavailable
from tests.clients.wait_until import eventually
from tests.free_port import free_port

from . import brokers
from .test_sinks import handle, listening, publish_until_heard, received_events

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    with brokers.nats(free_port(), tmp_path_factory.mktemp("nats")) as address:
        yield address


@pytest.fixture(autouse=True)
def configured(address, settings) -> None:
    settings.CONDUCTOR_EVENT_QUEUES_NATS_URL = address


@pytest.fixture
def client(address) -> Callable[[Callable[[Any], Awaitable[Any]]], Any]:
    """Return a function that executes a coroutine with a client of another program."""

    def execute(use: Callable[[Any], Awaitable[Any]]) -> Any:
        async def connected() -> Any:
            connection = await nats.connect(address)
            try:
                return await use(connection.jetstream())
            finally:
                await connection.close()

        return asyncio.run(connected())

    return execute


def receive_one(queue: str) -> tuple[str, Any]:
    """Return the next message of a queue, which is acknowledged."""
    received: list[tuple[str, Any]] = []
    PROVIDERS["jsm"].consume(queue, lambda id, payload: received.append((id, payload)), lambda: bool(received))
    return received[0]


def create_consumer(queue: str) -> None:
    PROVIDERS["jsm"].consume(queue, lambda *_: None, lambda: True)


def test_messages_sent_while_no_process_listens_are_received_later():
    handle("jsm:paid")
    with listening():
        publish_until_heard("jsm:paid")

    publish("jsm:paid", "m1", {"n": 1})

    with listening():
        eventually(lambda: ("m1", {"n": 1}) in received_events("jsm:paid"), 60)


def test_a_message_of_a_crashed_receiver_is_redelivered(client, monkeypatch):
    monkeypatch.setattr(jetstream, "ACK_SECONDS", 1)
    create_consumer("jsm.crashes")
    publish("jsm:jsm.crashes", "m1", {"n": 1})

    async def receive_and_vanish(streams: Any) -> str:
        subscription = await streams.pull_subscribe_bind("conductor-jsm_crashes", "JSM_CRASHES")
        return (await subscription.fetch(1))[0].headers["Nats-Msg-Id"]

    assert client(receive_and_vanish) == "m1"
    assert receive_one("jsm.crashes") == ("m1", {"n": 1})


def test_a_message_whose_processing_fails_is_redelivered_at_once():
    create_consumer("refunds")
    publish("jsm:refunds", "m1", {"n": 1})

    def fail(*_: Any) -> None:
        raise OSError("the database went away")

    with pytest.raises(OSError, match="went away"):
        PROVIDERS["jsm"].consume("refunds", fail, lambda: False)
    assert receive_one("refunds") == ("m1", {"n": 1})


def test_long_processing_extends_the_time_of_a_message(monkeypatch):
    monkeypatch.setattr(jetstream, "ACK_SECONDS", 0.3)
    create_consumer("slow")
    publish("jsm:slow", "m1", {})
    publish("jsm:slow", "m2", {})
    received: list[str] = []

    def take_long(id: str, _: Any) -> None:
        received.append(id)
        extensions = []
        original = nats.aio.msg.Msg.in_progress

        async def count(message: Any) -> None:
            extensions.append(message)
            await original(message)

        with monkeypatch.context() as watched:
            watched.setattr(nats.aio.msg.Msg, "in_progress", count)
            eventually(lambda: len(extensions) >= 5, 30)

    PROVIDERS["jsm"].consume("slow", take_long, lambda: "m2" in received)

    assert received[0] == "m1"


def test_each_group_receives_each_message_once():
    for queue in ("bills", "bills:audit"):
        create_consumer(queue)

    publish("jsm:bills", "m1", {})
    publish("jsm:bills", "m1", {})
    publish("jsm:bills", "m2", {})

    for queue in ("bills", "bills:audit"):
        assert [receive_one(queue)[0] for _ in range(2)] == ["m1", "m2"]


def test_the_stream_of_the_operator_is_used(client):
    async def create_stream(streams: Any) -> None:
        await streams.add_stream(name="all-shops", subjects=["shop.>"])

    async def send(streams: Any) -> int:
        return (await streams.publish("shop.berlin", b"sold")).seq

    client(create_stream)
    create_consumer("shop.berlin")
    number = client(send)

    assert receive_one("shop.berlin") == (f"all-shops-{number}", "sold")


def test_events_without_a_server_with_streams_wait(settings, tmp_path):
    port = free_port()
    program = brokers.executable("nats-server", "nats-server")
    settings.CONDUCTOR_EVENT_QUEUES_NATS_URL = f"nats://127.0.0.1:{port}"

    with (
        brokers.running_broker([program, "-a", "127.0.0.1", "-p", str(port)], port),
        pytest.raises(SinkUnavailable, match="jsm cannot be reached"),
    ):
        publish("jsm:orders", "m1", {})
