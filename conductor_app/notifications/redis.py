"""Notifications between the processes of a cluster: messages on a Redis channel with the new attempts of queues."""

import atexit
import logging
import secrets
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic, sleep

import orjson
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from conductor_app.settings import conf

from .channel import WAITERS

log = logging.getLogger(__name__)

CHANNEL = "conductor:announcements"
# The pause after Redis could not be reached, so that requests do not wait for it repeatedly.
RETRY_SECONDS = 2.0
MAX_RETRY_SECONDS = 5.0
MAX_BATCH = 1000
# The first notification is sent at once. Later ones are collected, because every process reads each message.
PACE_SECONDS = 0.02


def publish(announced: Mapping[str, int]) -> None:
    """Send the notification from a thread, which combines several notifications into one message."""
    _publisher().enqueue(announced)


def start_listening() -> None:
    """Start the listener of this process, unless it runs already."""
    if not _listener.is_started:
        _listener.start()


class RedisPublisher:
    """Publishes notifications from a separate thread. It pauses after a failure."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._paused_until = 0.0
        self._waiting: SimpleQueue[Mapping[str, int]] = SimpleQueue()
        Thread(target=self._send_forever, name="wakeups-out", daemon=True).start()
        # Send pending notifications before a short-lived process ends.
        atexit.register(self._send_waiting)

    def enqueue(self, announced: Mapping[str, int]) -> None:
        self._waiting.put(announced)

    def _send_forever(self) -> None:
        while True:
            self._publish(Counter(self._waiting.get()) + self._take_waiting())
            sleep(PACE_SECONDS)

    def _send_waiting(self) -> None:
        if pending := self._take_waiting():
            self._publish(pending)

    def _take_waiting(self) -> Counter[str]:
        """Return the collected attempts by queue."""
        announced: Counter[str] = Counter()
        with suppress(Empty):
            while len(announced) < MAX_BATCH:
                announced.update(self._waiting.get_nowait())
        return announced

    def _publish(self, announced: Mapping[str, int]) -> None:
        if monotonic() < self._paused_until:
            return
        try:
            self._client.publish(CHANNEL, orjson.dumps([_process_id(), announced]))
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
        """Start to listen, unless another thread has done so."""
        with self._lock:
            if not self.is_started:
                Thread(target=self._listen_forever, name="wakeups", daemon=True).start()
                self.is_started = True

    def _listen_forever(self) -> None:
        pause = 0.1
        while True:
            try:
                self._listen()
            except (redis.RedisError, OSError) as error:
                pause = 0.1 if self.is_connected.is_set() else min(pause * 2, MAX_RETRY_SECONDS)
                self.is_connected.clear()
                log.debug("redis_listener_disconnected: %s", error)
            Event().wait(pause)

    def _listen(self) -> None:
        with _client(blocks_on_read=True).pubsub() as channel:  # type: ignore[no-untyped-call]
            channel.subscribe(CHANNEL)
            for message in channel.listen():
                if message["type"] == "subscribe":
                    # Notifications before this point were not received.
                    WAITERS.value.wake_all()
                    self.is_connected.set()
                elif message["type"] == "message":
                    _receive_hint(message["data"])


_listener = RedisListener()


def _receive_hint(hint: bytes) -> None:
    sender, announced = orjson.loads(hint)
    if sender != _process_id():
        WAITERS.value.wake(announced)


@cache
def _process_id() -> str:
    """Return the id by which this process recognizes its own messages. Created on demand, after a fork."""
    return secrets.token_hex(8)


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
