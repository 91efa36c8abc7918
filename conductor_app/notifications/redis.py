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

from .waiters import WAITERS

log = logging.getLogger(__name__)

CHANNEL = "conductor:wakeups"
# The time without attempts to send after Redis could not be reached: requests must not wait for it repeatedly.
RETRY_SECONDS = 2.0
MAX_RETRY_SECONDS = 5.0
MAX_BATCH = 1000
# The first notification is sent at once, later ones are collected: every process reads each message.
PACE_SECONDS = 0.02
PROCESS_ID = secrets.token_hex(8)


def publish(queues: Collection[str]) -> None:
    """Send the notification from a thread, which collects further ones into one message."""
    _publisher().enqueue(queues)


def start_listening() -> None:
    """Start this process's listener, once."""
    if not _listener.is_started:
        _listener.start()


class RedisPublisher:
    """Publishes from a thread of its own, and holds its tongue for a while after a failure."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._paused_until = 0.0
        self._waiting: SimpleQueue[Collection[str]] = SimpleQueue()
        Thread(target=self._send_forever, name="wakeups-out", daemon=True).start()
        # A process that announces and ends at once has sent the announcement.
        atexit.register(self._send_waiting)

    def enqueue(self, queues: Collection[str]) -> None:
        self._waiting.put(queues)

    def _send_forever(self) -> None:
        while True:
            self._publish([*self._waiting.get(), *self._take_waiting()])
            sleep(PACE_SECONDS)

    def _send_waiting(self) -> None:
        if left := self._take_waiting():
            self._publish(left)

    def _take_waiting(self) -> list[str]:
        """Return the collected mentions. Repeated ones count, because each wakes one waiter."""
        found: list[str] = []
        with suppress(Empty):
            while len(found) < MAX_BATCH:
                found += self._waiting.get_nowait()
        return found

    def _publish(self, queues: Collection[str]) -> None:
        if monotonic() < self._paused_until:
            return
        try:
            self._client.publish(CHANNEL, orjson.dumps([PROCESS_ID, *queues]))
        except redis.RedisError as error:
            if not self._paused_until:
                log.warning(
                    "Redis cannot be reached. Notifications are disabled; polls may wait one second longer (%s).",
                    error,
                )
            self._paused_until = monotonic() + RETRY_SECONDS
        else:
            self._paused_until = 0.0


class RedisListener:
    """Thread that receives the notifications of other processes."""

    def __init__(self) -> None:
        self.is_started = False
        self.is_connected = Event()
        self._lock = Lock()

    def start(self) -> None:
        """Begin to listen, unless another thread was first."""
        with self._lock:
            if not self.is_started:
                Thread(target=self._listen_forever, name="wakeups", daemon=True).start()
                self.is_started = True

    def _listen_forever(self) -> None:
        rest = 0.1
        while True:
            try:
                self._listen()
            except (redis.RedisError, OSError) as error:
                rest = 0.1 if self.is_connected.is_set() else min(rest * 2, MAX_RETRY_SECONDS)
                self.is_connected.clear()
                log.debug("wake-ups were interrupted: %s", error)
            Event().wait(rest)

    def _listen(self) -> None:
        with _client(blocks_on_read=True).pubsub(ignore_subscribe_messages=False) as channel:
            channel.subscribe(CHANNEL)
            for message in channel.listen():
                if message["type"] == "subscribe":
                    # Notifications before this point were missed.
                    WAITERS.wake_all()
                    self.is_connected.set()
                elif message["type"] == "message":
                    _receive_hint(message["data"])


_listener = RedisListener()


def _receive_hint(hint: bytes) -> None:
    sender, *queues = orjson.loads(hint)
    if sender != PROCESS_ID:
        WAITERS.wake(queues)


@cache
def _publisher() -> RedisPublisher:
    return RedisPublisher(_client())


def _client(*, blocks_on_read: bool = False) -> redis.Redis:
    """Return a client that does not retry, because the caller decides how to handle an error."""
    return redis.Redis.from_url(
        conf.redis_url,
        socket_connect_timeout=1,
        socket_timeout=None if blocks_on_read else 0.5,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=0,
    )
