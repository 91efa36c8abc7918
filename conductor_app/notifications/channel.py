"""Announce new work in queues after a commit, and subscribe to queues while waiting."""

import logging
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import Protocol, cast

from conductor_app import conf

from .waiters import WAITERS, Waiter

log = logging.getLogger(__name__)
AnnouncementListener = Callable[[Collection[str]], None]
_announcement_listeners: list[AnnouncementListener] = []


class Backend(Protocol):
    """Transport of notifications to other processes."""

    def publish(self, queues: Collection[str]) -> None:
        """Send the notification, or drop it if it cannot be sent."""

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
    not_woken = WAITERS.wake(announced)
    for notify, queues in (
        (_backend(conf.wakeups).publish, not_woken),
        *((notify, announced) for notify in _announcement_listeners),
    ):
        try:
            if queues:
                notify(queues)
        except Exception:
            log.exception("notification_lost", extra={"queues": announced[:5]})


def subscribe(*queues: str) -> AbstractContextManager[Waiter]:
    """Subscribe to queues. Subscribe before reading the queue, so that no notification is missed in between."""
    _backend(conf.wakeups).start_listening()
    return WAITERS.subscribe(*queues)


def prepare_backend() -> None:
    """Load the transport, which takes half a second, before the first request."""
    _backend(conf.wakeups)


def count_waiting() -> int:
    """Return the number of waiters in this process."""
    return WAITERS.count


def is_closing() -> bool:
    """Return True if this process is about to stop. Polls must then return at once."""
    return WAITERS.is_closing


def wake_all_and_close() -> None:
    """End every wait of this process, and refuse new ones, because it is about to stop."""
    WAITERS.close()


def on_announce(listener: AnnouncementListener) -> None:
    """Register a listener, which is called with the queues of every announcement of this process."""
    if listener not in _announcement_listeners:
        _announcement_listeners.append(listener)


@cache
def _backend(module: str) -> Backend:
    return cast(Backend, import_module(module))
