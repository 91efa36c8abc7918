"""Notifications through Redis, and operation without Redis."""

import orjson
import pytest
import redis

from conductor_app.notifications.redis import CHANNEL, RedisPublisher

from .conftest import redis_peers, unstarted_redis_server


@pytest.fixture
def cluster(redis_server):
    neighbours = redis_peers(redis_server)
    yield neighbours
    neighbours.end()


@pytest.fixture
def passing_server():
    """Yield a server that a test can stop and restart at the same address."""
    server = unstarted_redis_server()
    server.start()
    yield server
    if server.is_running():
        server.stop()


def test_a_process_receives_announcements_of_another(cluster):
    listener = cluster.listener("pay")
    assert listener.read_line() == "listening"

    cluster.announce("pay")

    assert listener.read_line() == "heard"


def test_an_announcement_while_redis_is_away_is_dropped_with_one_warning(passing_server):
    neighbours = redis_peers(passing_server)
    passing_server.stop()

    announcer = neighbours.announce("pay")

    assert announcer.returncode == 0
    assert announcer.stderr.read().count("Redis cannot be reached") == 1


def test_waiters_check_again_after_a_redis_outage(passing_server):
    neighbours = redis_peers(passing_server)
    listener = neighbours.listener("pay")
    assert listener.read_line() == "listening"
    passing_server.stop()

    passing_server.start()

    assert listener.read_line() == "heard"
    neighbours.end()


def test_announcements_in_quick_succession_are_batched(redis_server):
    with redis.Redis.from_url(redis_server.connection_url) as client, client.pubsub() as channel:
        channel.subscribe(CHANNEL)
        assert channel.get_message(timeout=10)["type"] == "subscribe"
        # Its own client, which its thread keeps: it may still read the answer to its last message when this ends.
        sender = RedisPublisher(redis.Redis.from_url(redis_server.connection_url))

        for _ in range(200):
            sender.enqueue({"pay": 1})

        messages, received = 0, 0
        while received < 200:
            _, announced = orjson.loads(channel.get_message(timeout=10)["data"])
            messages, received = messages + 1, received + announced["pay"]
    assert received == 200
    assert messages < 100
