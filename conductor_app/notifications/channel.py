"""The front of the wake-ups: tell of queues after a commit, listen to one while waiting."""

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
    """How a hint reaches the other processes."""

    def publish(self, queues: Collection[str]) -> None:
        """Pass the hint on; what cannot be told is dropped."""

    def start_listening(self) -> None:
        """See to it that hints of others reach the ears of this process."""


def announce(queues: Iterable[str]) -> None:
    """Say that these queues have new work, once for each piece of it. Never raises: the work is committed already."""
    announced = list(queues)
    if not announced:
        return
    # A waiter of this process takes what it was woken for: the others need not hear of that.
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
    """An ear at the queues. Listen first, look then: what arrives between the two ends the wait that follows."""
    _backend(conf.wakeups).start_listening()
    return WAITERS.subscribe(*queues)


def prepare_backend() -> None:
    """Load what hints travel by, which takes the first of all requests half a second else."""
    _backend(conf.wakeups)


def count_waiting() -> int:
    """How many waiters this process has."""
    return WAITERS.count


def is_closing() -> bool:
    """Whether this process is about to end: who waits for work should answer with what there is."""
    return WAITERS.is_closing


def wake_all_and_close() -> None:
    """End every wait of this process, and let none begin: it is about to end."""
    WAITERS.close()


def on_announce(listener: AnnouncementListener) -> None:
    """Let this be called with the queues of every announcement of this process."""
    if listener not in _announcement_listeners:
        _announcement_listeners.append(listener)


@cache
def _backend(module: str) -> Backend:
    return cast(Backend, import_module(module))
