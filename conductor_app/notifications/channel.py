"""Announce new work in queues after a commit, and subscribe to queues while waiting.

`WAITERS` has the waiters of this process. A command that waits is a generator, so that a server can run it without a
thread. The generator yields each wait. Its caller sends the result of `Waiter.end_wait`, from any thread.
"""

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from threading import Event, Lock
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from ..settings import conf
from ..utils import process_state
from ..utils.process_state import Wiring

TOPIC_PREFIX = "\0"
"""The prefix of broadcast topics. Names of queues never start with it."""
COUNTED_SLOTS = 1024
"""The number of counters of announcements, which the queues share: clients may name any number of queues."""
log = logging.getLogger(__name__)


def broadcast_topic(name: str) -> str:
    """Return the topic that notifies all waiters under this name, instead of one of them."""
    return f"{TOPIC_PREFIX}{name}"


def local_caller_has_left() -> bool:
    """Return False: a caller within this process does not disconnect."""
    return False


class Waiter:
    """One waiter, for one queue or several. It reads its queue after it has subscribed, and whenever a wait ends.

    `most`: the number of attempts that it can claim at once. `has_left`: returns True if its client has disconnected.
    """

    def __init__(self, registry: "WaiterRegistry", queue: str, most: int, has_left: Callable[[], bool]) -> None:
        self.most, self.has_left = most, has_left
        self._registry, self._queue = registry, queue
        self.is_waiting = False
        # Attempts that were announced to this waiter: before its last wait ended, and since then.
        self.expected = self.announced = 0
        # Whether a lookup has woken this waiter, or it has claimed nothing, since the last timed lookup of its queue.
        self.was_tried = False
        self.was_notified = False
        """Whether there is an unconsumed notification."""
        self._wake: Callable[[], None] = _ignore_notification

    @property
    def unclaimed(self) -> int:
        """Return the number of announced attempts for which this waiter has not finished a claim."""
        return self.expected + self.announced

    def wait(self, seconds: float) -> bool:
        """Wait in this thread for a notification, at most `seconds`, and consume it. Returns True if there was one."""
        notified = Event()
        if self.begin_wait(notified.set):
            notified.wait(seconds)
        return self.end_wait()

    def begin_wait(self, wake: Callable[[], None]) -> bool:
        """Call `wake` with the next notification, in its thread. Returns False if there is one already.

        `wake` may still be called after the end of the wait, if both happen at the same time.
        """
        with self._registry.lock:
            self.is_waiting, self.expected, self._wake = True, 0, wake
            return not self.was_notified

    def end_wait(self) -> bool:
        """End the wait and consume its notification. Returns True if there was one."""
        with self._registry.lock:
            woken, self.was_notified, self._wake = self.was_notified, False, _ignore_notification
            self.is_waiting, self.expected, self.announced = False, self.announced, 0
        return woken

    def finish_claim(self, count: int) -> int:
        """Record a claim of `count` attempts. Returns the number of announced attempts that it has missed.

        A waiter that claims nothing becomes the last one of its queue: its worker may be drained.
        """
        with self._registry.lock:
            missed, self.expected = max(self.expected - count, 0), 0
            if not count:
                self.was_tried = True
                self._registry.move_to_end(self._queue, self)
        return missed

    def notify(self) -> Callable[[], None]:
        """Record a notification. Returns the function that ends the wait. The caller holds the lock.

        It is called without the lock, because it may start a thread.
        """
        self.was_notified = True
        return self._wake


def _ignore_notification() -> None:
    """Do nothing: the waiter is not waiting, and reads its queue before it waits."""


class WaiterRegistry:
    """All waiters of a process. New work wakes the waiters that have waited longest; a broadcast wakes all."""

    def __init__(self) -> None:
        self.lock = Lock()
        # Ordered: the first waiters of a queue have waited longest. A waiter can be removed in constant time.
        self._queues: dict[str, OrderedDict[Waiter, None]] = {}
        self._count = 0
        # The monotonic time until which a lookup is valid that has found no attempt in a queue.
        self._empty_until: dict[str, float] = {}
        self._announced_counts = [0] * COUNTED_SLOTS
        self.is_closing = False

    @property
    def count(self) -> int:
        """Return the number of waiters."""
        return self._count

    @contextmanager
    def subscribe(
        self, *queues: str, most: int = 1, has_left: Callable[[], bool] = local_caller_has_left
    ) -> Iterator[Waiter]:
        """Subscribe to queues during the block.

        Announced attempts that the waiter has not claimed are passed on to the next waiters. Afterwards, its
        `unclaimed` are those that no other waiter of this process was notified of.
        """
        waiter = Waiter(self, queues[0], most, has_left)
        with self.lock:
            for queue in queues:
                self._queues.setdefault(queue, OrderedDict())[waiter] = None
            self._count += 1
        wakes: list[Callable[[], None]] = []
        try:
            yield waiter
        finally:
            with self.lock:
                self._count -= 1
                for queue in queues:
                    self._leave(queue, waiter)
                if waiter.unclaimed:
                    waiter.expected, waiter.announced = 0, self._pass_on(queues[0], waiter.unclaimed, wakes)
            _call_all(wakes)

    def wake(self, announced: Mapping[str, int]) -> dict[str, int]:
        """Wake waiters for the announced number of attempts of each queue.

        Returns the attempts that other processes must be notified of: those without a waiter in this process, and all
        broadcasts.
        """
        wakes: list[Callable[[], None]] = []
        with self.lock:
            for queue in announced:
                self._announced_counts[hash(queue) % COUNTED_SLOTS] += 1
            rest = {queue: self._pass_on(queue, count, wakes) for queue, count in announced.items()}
        _call_all(wakes)
        return {queue: count for queue, count in rest.items() if count > 0}

    def count_announced(self, queue: str) -> int:
        """Return a number that every announcement of the queue changes, as may those of other queues."""
        return self._announced_counts[hash(queue) % COUNTED_SLOTS]

    def waiting_queues(self) -> dict[str, int]:
        """Return the number of attempts that the waiters of each queue can claim."""
        with self.lock:
            return {
                queue: sum(waiter.most for waiter in waiters)
                for queue, waiters in self._queues.items()
                if not queue.startswith(TOPIC_PREFIX)
            }

    def begin_lookup(self, queues: Iterable[str]) -> None:
        """Begin a lookup. An announcement from now on may be of an attempt that the lookup does not find."""
        with self.lock:
            self._empty_until |= dict.fromkeys(queues, 0.0)

    def mark_empty(self, queue: str, until: float) -> None:
        """Record that a lookup has found no attempt, unless one has been announced since its begin.

        `until`: the monotonic time of the next lookup.
        """
        with self.lock:
            if queue in self._empty_until:
                self._empty_until[queue] = until

    def is_empty(self, queue: str, moment: float) -> bool:
        """Return True if a current lookup has found no attempt, and waiters were woken for all announced ones.

        A waiter that has subscribed before needs no claim of its own: it would wait beside those that found nothing.
        """
        with self.lock:
            return moment < self._empty_until.get(queue, 0.0)

    def discard_lookups(self) -> None:
        """Discard the results of lookups, because no poll waits any more."""
        with self.lock:
            self._empty_until.clear()

    def offer(self, queue: str, claimable: int, *, repeated: bool = False) -> None:
        """Wake waiters for the attempts that a lookup has found, except those that were announced already.

        `repeated`: the lookup follows a claim that found less than announced. Then the waiters that were tried since
        the last timed lookup are not woken, because the attempts may not be for their workers.
        """
        wakes: list[Callable[[], None]] = []
        with self.lock:
            waiters = self._queues.get(queue, ())
            claimable -= sum(waiter.unclaimed for waiter in waiters)
            for waiter in waiters:
                waiter.was_tried = waiter.was_tried and repeated
                if claimable > 0 and waiter.is_waiting and not waiter.announced and not waiter.was_tried:
                    waiter.was_tried = True
                    claimable = _announce_to(waiter, claimable, wakes)
        _call_all(wakes)

    def wake_disconnected(self) -> None:
        """Wake the waiters whose clients have disconnected, so that their threads become free."""
        with self.lock:
            waiters = {
                waiter
                for queue_waiters in self._queues.values()
                for waiter in queue_waiters
                if waiter.has_left is not local_caller_has_left
            }
        left = [waiter for waiter in waiters if waiter.is_waiting and waiter.has_left()]
        self._notify_all(left)

    def wake_all(self) -> None:
        """Wake every waiter, because notifications may have been missed."""
        with self.lock:
            waiters = [waiter for queue_waiters in self._queues.values() for waiter in queue_waiters]
        self._notify_all(waiters)

    def _notify_all(self, waiters: Iterable[Waiter]) -> None:
        with self.lock:
            wakes = [waiter.notify() for waiter in waiters]
        _call_all(wakes)

    def close(self) -> None:
        """Wake every waiter and refuse new ones, because this process is about to stop."""
        self.is_closing = True
        self.wake_all()

    def move_to_end(self, queue: str, waiter: Waiter) -> None:
        """Make a waiter the last one of its queue. The caller holds the lock."""
        self._queues[queue].move_to_end(waiter)

    def _pass_on(self, queue: str, count: int, wakes: list[Callable[[], None]]) -> int:
        """Notify waiters, and remember that the queue is not empty if there are too few."""
        rest = self._notify(queue, count, wakes)
        if rest > 0:
            self._empty_until.pop(queue, None)
        return rest

    def _notify(self, queue: str, count: int, wakes: list[Callable[[], None]]) -> int:
        """Notify waiters of a queue, or all waiters of a topic. Returns the number of attempts without a waiter."""
        waiters = self._queues.get(queue, ())
        if queue.startswith(TOPIC_PREFIX):
            wakes += [waiter.notify() for waiter in waiters]
            return count
        # A waiter that is claiming reads its queue again afterwards, or passes the notification on.
        for is_waiting in (True, False):
            for waiter in waiters:
                if count <= 0:
                    return count
                if waiter.is_waiting is is_waiting and not waiter.announced:
                    count = _announce_to(waiter, count, wakes)
        return count

    def _leave(self, queue: str, waiter: Waiter) -> None:
        queue_waiters = self._queues[queue]
        del queue_waiters[waiter]
        if not queue_waiters:
            del self._queues[queue]


def _announce_to(waiter: Waiter, count: int, wakes: list[Callable[[], None]]) -> int:
    """Notify a waiter of as many attempts as it can claim. Returns the number of the others."""
    waiter.announced = min(count, waiter.most)
    wakes.append(waiter.notify())
    return count - waiter.announced


def _call_all(wakes: Iterable[Callable[[], None]]) -> None:
    for wake in wakes:
        wake()


WAITERS = process_state.slot(WaiterRegistry)
CROWDED_SECONDS = 1.0
"""The maximum wait of a request above the limit of waiting requests: long enough that its client does not poll in a
tight loop, and short enough that its connection becomes free for other clients.
"""
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class WaitingClient:
    """The client of a request that may wait.

    `has_left`: returns True if it has disconnected. `holds_thread`: False if the server runs the waits of this request
    without a thread, and closes the generator when the client disconnects.
    """

    has_left: Callable[[], bool] = local_caller_has_left
    holds_thread: bool = True


LOCAL_CALLER = WaitingClient()
"""A caller in this process, which does not disconnect."""


class PendingWait(NamedTuple):
    """A wait for a notification, for at most `seconds`."""

    waiter: Waiter
    seconds: float


WaitSteps = Generator[PendingWait, bool, Result]
"""The steps of a command that waits: it yields waits and returns its result."""


def wait_in_thread(steps: WaitSteps[Result]) -> Result:
    """Run all steps in this thread, which sleeps while they wait. Returns their result."""
    with closing(steps):
        try:
            wait = next(steps)
            while True:
                wait = steps.send(wait.waiter.wait(wait.seconds))
        except StopIteration as end:
            return end.value


def limit_wait(client: WaitingClient, seconds: float) -> float:
    """Return how long a request may wait, at most `seconds`: less if too many requests are waiting already."""
    if client.holds_thread:
        return seconds if WAITERS.value.count < conf.max_waiting_threads else 0.0
    return seconds if WAITERS.value.count < conf.max_waiting_polls else min(seconds, CROWDED_SECONDS)


AnnouncementListener = Callable[[Collection[str]], None]
_announcement_listeners: Wiring[tuple[AnnouncementListener, ...]] = process_state.wiring(())


class Backend(Protocol):
    """Transport of notifications to other processes."""

    def publish(self, announced: Mapping[str, int]) -> None:
        """Send the notification with the number of attempts by queue, or drop it if it cannot be sent."""

    def start_listening(self) -> None:
        """Start to receive the notifications of other processes."""


def announce(queues: Iterable[str]) -> None:
    """Announce new work. Never raises, because the work is committed already.

    `queues`: one entry per attempt, so queues may be repeated.
    """
    announced = list(queues)
    if not announced:
        return
    # If a waiter of this process is woken, it claims the work, and other processes need no notification.
    _publish(WAITERS.value.wake(Counter(announced)))
    for listener in _announcement_listeners.value:
        _notify(listener, announced)


def _publish(announced: Mapping[str, int]) -> None:
    if announced:
        _notify(_backend(conf.wakeups).publish, announced)


def _notify(notify: Callable[[Any], None], announced: Collection[str]) -> None:
    try:
        notify(announced)
    except Exception:
        log.exception("notification_lost", extra={"queues": list(announced)[:5]})


@contextmanager
def subscribe(*queues: str, most: int = 1, client: WaitingClient = LOCAL_CALLER) -> Iterator[Waiter]:
    """Subscribe to queues. Subscribe before reading the queue, so that no notification is missed in between.

    `most`: the number of attempts that the waiter can claim at once. Attempts that were announced to the waiter, and
    that it has not claimed, are announced to others.
    """
    _backend(conf.wakeups).start_listening()
    waiter = None
    try:
        # A client that holds no thread is watched by the server.
        has_left = client.has_left if client.holds_thread else local_caller_has_left
        with WAITERS.value.subscribe(*queues, most=most, has_left=has_left) as waiter:
            yield waiter
    finally:
        if waiter is not None and waiter.unclaimed:
            _publish({queues[0]: waiter.unclaimed})


def prepare_backend() -> None:
    """Load the transport, which takes half a second, before the first request."""
    _backend(conf.wakeups)


def count_waiting() -> int:
    """Return the number of waiters in this process."""
    return WAITERS.value.count


def is_closing() -> bool:
    """Return True if this process is about to stop. Polls must then return at once."""
    return WAITERS.value.is_closing


def wake_all_and_close() -> None:
    """End every wait of this process, and refuse new ones, because it is about to stop."""
    WAITERS.value.close()


def on_announce(listener: AnnouncementListener) -> None:
    """Register a listener, which is called with the queues of every announcement of this process."""
    if listener not in _announcement_listeners.value:
        _announcement_listeners.value += (listener,)


@cache
def _backend(module: str) -> Backend:
    return cast(Backend, import_module(module))
