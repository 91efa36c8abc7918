"""Hints between the processes of a cluster: a message on one Redis channel names the queues."""

import logging
import secrets
from collections.abc import Collection
from functools import cache
from threading import Event, Lock, Thread
from time import monotonic

import orjson
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from conductor_app import conf

from .ears import EARS

log = logging.getLogger(__name__)

CHANNEL = "conductor:wakeups"
# How long nothing is sent after Redis could not be reached: a request must not wait for it again and again.
REST_SECONDS = 2.0
LONGEST_REST_SECONDS = 5.0
OWN = secrets.token_hex(8)


def tell_others(queues: Collection[str]) -> None:
    """Publish the hint; while Redis is away it is dropped."""
    _sender().publish(orjson.dumps([OWN, *queues]))


def attend() -> None:
    """Start this process's listener, once."""
    if not _listener.is_started:
        _listener.start()


class Sender:
    """Publishes, and holds its tongue for a while after a failure."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._silent_until = 0.0

    def publish(self, hint: bytes) -> None:
        if monotonic() < self._silent_until:
            return
        try:
            self._client.publish(CHANNEL, hint)
        except redis.RedisError as error:
            if not self._silent_until:
                log.warning("Redis cannot be reached, wake-ups are off: workers wait up to a second longer (%s)", error)
            self._silent_until = monotonic() + REST_SECONDS
        else:
            self._silent_until = 0.0


class Listener:
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


_listener = Listener()


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
