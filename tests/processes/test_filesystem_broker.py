"""Messages as files in a folder."""

import json
from threading import Thread
from time import time

import pytest
from kombu import Connection

import conductor_app.celery  # noqa: F401  (names the transport)
from conductor_app.settings.services import folder_broker


@pytest.fixture
def queue(tmp_path, request):
    """Return a queue in its own folder. Its name is unique because kombu caches bindings."""
    with Connection("folder://localhost/", transport_options=folder_broker(tmp_path)) as connection:
        yield connection.SimpleQueue(request.node.name)


def test_a_message_arrives_unchanged(queue):
    queue.put({"job": "sweep"})

    assert take(queue) == {"job": "sweep"}


def test_messages_arrive_in_order(queue):
    for number in range(3):
        queue.put(number)
        let_a_millisecond_pass()

    assert [take(queue) for _ in range(3)] == [0, 1, 2]


def test_a_reader_never_meets_half_a_message(queue, tmp_path):
    messages = tmp_path / "messages"
    writer = Thread(target=lambda: [queue.put("x" * 50_000) for _ in range(200)])
    writer.start()

    read = set()
    while writer.is_alive() or len(read) < len(list(messages.glob("*.msg"))):
        for path in set(messages.glob("*.msg")) - read:
            json.loads(path.read_text())
            read.add(path)

    assert len(read) == 200


def take(queue):
    """Return the next message and acknowledge it."""
    message = queue.get(timeout=2)
    message.ack()
    return message.payload


def let_a_millisecond_pass():
    """Wait for the next millisecond, because a message's name contains the millisecond of its creation."""
    began = round(time() * 1000)
    while round(time() * 1000) == began:
        pass
