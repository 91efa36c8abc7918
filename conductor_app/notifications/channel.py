"""Announce new work in queues after a commit, and subscribe to queues while waiting."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from conductor_app.settings import conf
from conductor_app.utils import process_state
from conductor_app.utils.process_state import Wiring

from .waiters import LOCAL_CALLER, WAITERS, Waiter, WaitingClient, local_caller_has_left

log = logging.getLogger(__name__)
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
