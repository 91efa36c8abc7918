"""Hints between the processes of a cluster: a message on one Redis channel names the queues."""

import atexit
import logging
import secrets
from collections.abc import Collection
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic, sleep

import orjson
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from conductor_app import conf

from .waiters import EARS

log = logging.getLogger(__name__)

CHANNEL = "conductor:wakeups"
# How long nothing is sent after Redis could not be reached: a request must not wait for it again and again.
REST_SECONDS = 2.0
LONGEST_REST_SECONDS = 5.0
MOST_AT_ONCE = 1000
# The first hint goes out at once, those of the next moment together: each message is read by every process.
PACE_SECONDS = 0.02
OWN = secrets.token_hex(8)


def publish(queues: Collection[str]) -> None:
    """Have the hint published, by a thread that sends all that has gathered meanwhile as one message."""
    _sender().say(queues)


def start_listening() -> None:
    """Start this process's listener, once."""
    if not _listener.is_started:
        _listener.start()


class Sender:
    """Publishes from a thread of its own, and holds its tongue for a while after a failure."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._silent_until = 0.0
        self._waiting: SimpleQueue[Collection[str]] = SimpleQueue()
        Thread(target=self._send_for_ever, name="wakeups-out", daemon=True).start()
        # A process that announces and ends at once has still told it.
        atexit.register(self._send_waiting)

    def say(self, queues: Collection[str]) -> None:
        self._waiting.put(queues)

    def _send_for_ever(self) -> None:
        while True:
            self._publish([*self._waiting.get(), *self._gathered()])
            sleep(PACE_SECONDS)

    def _send_waiting(self) -> None:
        if left := self._gathered():
            self._publish(left)

    def _gathered(self) -> list[str]:
        """What was said and not yet sent; every mention counts, for each wakes one waiter."""
        found: list[str] = []
        with suppress(Empty):
            while len(found) < MOST_AT_ONCE:
                found += self._waiting.get_nowait()
        return found

    def _publish(self, queues: Collection[str]) -> None:
        if monotonic() < self._silent_until:
            return
        try:
            self._client.publish(CHANNEL, orjson.dumps([OWN, *queues]))
        except redis.RedisError as error:
            if not self._silent_until:
                log.warning("Redis cannot be reached, wake-ups are off: workers wait up to a second longer (%s)", error)
            self._silent_until = monotonic() + REST_SECONDS
        else:
            self._silent_until = 0.0


class RedisListener:
    """One thread a process that hears what the others publish."""

    def __init__(self) -> None:
        self.is_started = False
        self.is_connected = Event()
        self._lock = Lock()

    def start(self) -> None:
        """Begin to listen, unless another thread was first."""
        with self._lock:
            if not self.is_started:
                Thread(target=self._listen_for_ever, name="wakeups", daemon=True).start()
                self.is_started = True

    def _listen_for_ever(self) -> None:
        rest = 0.1
        while True:
            try:
                self._listen()
            except (redis.RedisError, OSError) as error:
                rest = 0.1 if self.is_connected.is_set() else min(rest * 2, LONGEST_REST_SECONDS)
                self.is_connected.clear()
                log.debug("wake-ups were interrupted: %s", error)
            Event().wait(rest)

    def _listen(self) -> None:
        with _client(reads_for_ever=True).pubsub(ignore_subscribe_messages=False) as channel:
            channel.subscribe(CHANNEL)
            for message in channel.listen():
                if message["type"] == "subscribe":
                    # What was said before this moment was not heard.
                    EARS.wake_all()
                    self.is_connected.set()
                elif message["type"] == "message":
                    _hear(message["data"])


_listener = RedisListener()


def _hear(hint: bytes) -> None:
    sender, *queues = orjson.loads(hint)
    if sender != OWN:
        EARS.wake(queues)


@cache
def _sender() -> Sender:
    return Sender(_client())


def _client(*, reads_for_ever: bool = False) -> redis.Redis:
    """A client that tries once: who calls decides what a failure means."""
    return redis.Redis.from_url(
        conf.redis_url,
        socket_connect_timeout=1,
        socket_timeout=None if reads_for_ever else 0.5,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=0,
    )
