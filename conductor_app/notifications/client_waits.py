"""Waits of clients' requests. A command that waits is a generator, so that a server can run it without a thread.

The generator yields each wait. Its caller sends the result of `Waiter.end_wait`, from any thread.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from conductor_app.settings import conf

from .waiters import WAITERS, Waiter, local_caller_has_left

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
