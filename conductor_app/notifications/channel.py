"""Notifications: announce queues after a commit, and subscribe to one while waiting."""

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
        """Send the notification; it is dropped if that is impossible."""

    def start_listening(self) -> None:
        """Start to receive the notifications of other processes."""


def announce(queues: Iterable[str]) -> None:
    """Announce new work in these queues, one mention per attempt. Never raises: the work is committed already."""
    announced = list(queues)
    if not announced:
        return
    # A waiter of this process claims the work; the others need no notification.
    not_woken = WAITERS.wake(announced)
    for tell, queues in (
        (_backend(conf.wakeups).publish, not_woken),
        *((tell, announced) for tell in _announcement_listeners),
    ):
        try:
            if queues:
                tell(queues)
        except Exception:
            log.exception("hint_lost", extra={"queues": announced[:5]})


def subscribe(*queues: str) -> AbstractContextManager[Waiter]:
    """Subscribe to queues. Subscribe before reading: a notification in between ends the next wait."""
    _backend(conf.wakeups).start_listening()
    return WAITERS.subscribe(*queues)


def prepare_backend() -> None:
    """Load the transport in advance; otherwise the first request takes half a second longer."""
    _backend(conf.wakeups)


def count_waiting() -> int:
    """Return the number of waiters in this process."""
    return WAITERS.count


def is_closing() -> bool:
    """Return True if this process is about to stop: polls should return at once."""
    return WAITERS.is_closing


def wake_all_and_close() -> None:
    """End every wait of this process, and refuse new ones, because it is about to stop."""
    WAITERS.close()


def on_announce(listener: AnnouncementListener) -> None:
    """Let this be called with the queues of every announcement of this process."""
    if listener not in _announcement_listeners:
        _announcement_listeners.append(listener)


@cache
def _backend(module: str) -> Backend:
    return cast(Backend, import_module(module))
