"""The front of the wake-ups: tell of queues after a commit, listen to one while waiting."""

import logging
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import Protocol, cast

from conductor_app import conf

from .waiters import EARS, Waiter

log = logging.getLogger(__name__)
Listener = Callable[[Collection[str]], None]
_told_too: list[Listener] = []


class Backend(Protocol):
    """How a hint reaches the other processes."""

    def publish(self, queues: Collection[str]) -> None:
        """Pass the hint on; what cannot be told is dropped."""

    def start_listening(self) -> None:
        """See to it that hints of others reach the ears of this process."""


def announce(queues: Iterable[str]) -> None:
    """Say that these queues have new work, once for each piece of it. Never raises: the work is committed already."""
    told = list(queues)
    if not told:
        return
    # A waiter of this process takes what it was woken for: the others need not hear of that.
    left = EARS.wake(told)
    for tell, queues in ((_backend(conf.wakeups).publish, left), *((tell, told) for tell in _told_too)):
        try:
            if queues:
                tell(queues)
        except Exception:
            log.exception("hint_lost", extra={"queues": told[:5]})


def subscribe(*queues: str) -> AbstractContextManager[Waiter]:
    """An ear at the queues. Listen first, look then: what arrives between the two ends the wait that follows."""
    _backend(conf.wakeups).start_listening()
    return EARS.subscribe(*queues)


def prepare_backend() -> None:
    """Load what hints travel by, which takes the first of all requests half a second else."""
    _backend(conf.wakeups)


def count_waiting() -> int:
    """How many waiters this process has."""
    return EARS.count


def is_closing() -> bool:
    """Whether this process is about to end: who waits for work should answer with what there is."""
    return EARS.is_closing


def wake_all_and_close() -> None:
    """End every wait of this process, and let none begin: it is about to end."""
    EARS.close()


def on_announce(listener: Listener) -> None:
    """Let this be called with the queues of every announcement of this process."""
    if listener not in _told_too:
        _told_too.append(listener)


@cache
def _backend(module: str) -> Backend:
    return cast(Backend, import_module(module))
