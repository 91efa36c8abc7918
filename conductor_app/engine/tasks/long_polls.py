"""Long polls: claims that wait for work without a database connection."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from random import random
from time import monotonic
from typing import TypeVar

from ... import notifications
from ...notifications import LOCAL_CALLER, PendingWait, Waiter, WaitingClient, WaitSteps
from ...telemetry import metrics
from ..queues.queue_lookups import LOOKUPS, release_connection

SHORT_WAIT_MS = 200
"""The maximum wait of a poll whose queue is not looked up in the meantime. It claims again at its end instead."""
MOST_EARLY = 0.1
"""The share of its wait by which a poll may end early."""
Taken = TypeVar("Taken")


@dataclass(frozen=True, slots=True)
class LongPoll:
    """A poll of a queue, for up to `count` attempts, that waits up to `wait_ms` milliseconds for the first."""

    queue: str
    wait_ms: int
    count: int = 1
    client: WaitingClient = LOCAL_CALLER


def begin_poll(poll: LongPoll, take: Callable[[], list[Taken]]) -> WaitSteps[list[Taken]]:
    """Return what `take` claims from the queue, at once or when the poll is woken.

    Returns earlier if too many requests are waiting. Nothing is claimed for a client that has disconnected: the attempt
    would be blocked until its lease expires.
    """
    if poll.client.has_left():
        return []
    seconds = notifications.limit_wait(poll.client, poll.wait_ms / 1000)
    if seconds <= 0:
        return take()
    # Polls that begin together, such as after a restart, would end and begin together for a long time.
    ends_at = monotonic() + seconds * (1 - random() * MOST_EARLY)
    with notifications.subscribe(poll.queue, most=poll.count, client=poll.client) as waiter:
        taken = [] if _is_known_to_be_empty(poll) else take()
        waiter.finish_claim(len(taken))
        while not taken and (yield from _wait(poll, waiter, ends_at)):
            taken = take()
            if waiter.finish_claim(len(taken)):
                LOOKUPS.value.repeat(poll.queue)
        return taken


def _is_known_to_be_empty(poll: LongPoll) -> bool:
    """Return True if a lookup for other polls has found nothing, and this poll waits for the next one."""
    return poll.wait_ms > SHORT_WAIT_MS and notifications.WAITERS.value.is_empty(poll.queue, monotonic())


def _wait(poll: LongPoll, waiter: Waiter, ends_at: float) -> Generator[PendingWait, bool, bool]:
    """Wait for a notification without a database connection. Returns True if the poll must claim again."""
    left, is_short = ends_at - monotonic(), poll.wait_ms <= SHORT_WAIT_MS
    if left <= 0 or notifications.is_closing():
        return False
    if not is_short:
        LOOKUPS.value.watch(poll.queue)
    release_connection()
    with metrics.gauge_waiting():
        is_woken = yield PendingWait(waiter, left)
    # A poll that does not claim passes its notification on when it unsubscribes.
    return (is_woken or is_short) and not (poll.client.has_left() or notifications.is_closing())
