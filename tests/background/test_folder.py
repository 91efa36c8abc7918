"""Messages as files in a folder."""

import json
from threading import Thread

import pytest
from kombu import Connection

import conductor_app.celery  # noqa: F401  (names the transport)
from conductor_app.settings.services import folder_broker


@pytest.fixture
def connection(tmp_path):
    with Connection("folder://localhost/", transport_options=folder_broker(tmp_path)) as connection:
        yield connection


def test_a_message_arrives_as_it_was_sent(connection):
    queue = connection.SimpleQueue("jobs")
    queue.put({"job": "sweep"})

    message = queue.get(timeout=2)

    assert message.payload == {"job": "sweep"}


def test_messages_arrive_in_the_order_in_which_they_were_sent(connection, tmp_path):
    queue = connection.SimpleQueue("jobs")
    for number in range(3):
        queue.put(number)
        moved_on(tmp_path)

    assert [queue.get(timeout=2).payload for _ in range(3)] == [0, 1, 2]


def test_a_reader_never_meets_half_a_message(connection, tmp_path):
    messages = tmp_path / "messages"
    queue = connection.SimpleQueue("jobs")
    writer = Thread(target=lambda: [queue.put("x" * 50_000) for _ in range(200)])
    writer.start()

    read = 0
    while read < 200:
        for path in messages.glob("*.msg"):
            json.loads(path.read_text())
            path.unlink()
            read += 1
    writer.join()


def moved_on(tmp_path):
    """Names carry the millisecond: wait for the next one."""
    from time import time

    now = round(time() * 1000)
    while round(time() * 1000) == now:
        pass
