"""Rates as token buckets in the database, from which each process takes several tokens at once.

The number of tokens that a process takes doubles while it uses them up within a second, and falls back to one
otherwise. So a busy caller causes few statements, and a process keeps few tokens that another one could use. Refused
requests cause no statement until the next token is due.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from django.db import transaction

from ... import clock, process_state
from ...core.errors import Busy, QuotaExceeded
from ...models import TokenBucket

LEASE_MS = 1_000
MAX_SHARE = 0.1
"""The part of a bucket that a process takes at most."""
MAX_WAIT_SECONDS = 5
MAX_CACHED = 10_000
IDLE_MS = 3_600_000
"""A bucket without use for this time is full, and its row can be deleted."""


class Rate(NamedTuple):
    """A kind of request that is limited. `period_ms`: the period of its limit, `noun`: how errors name it."""

    name: str
    field: str
    period_ms: int
    noun: str


STARTS = Rate("starts", "starts_per_second", 1_000, "starts per second")
POLLS = Rate("polls", "polls_per_second", 1_000, "polls per second")
SEARCHES = Rate("searches", "searches_per_minute", 60_000, "searches per minute")
RATES = (STARTS, POLLS, SEARCHES)


@dataclass(slots=True)
class TokenLease:
    """The tokens of one bucket that this process has taken."""

    limit: float = 0
    tokens: int = 0
    size: int = 1
    expires_at: int = 0
    refused_until: int = 0
    lock: Lock = field(default_factory=Lock)


class TokenLeases:
    """The leases of this process by caller and resource."""

    def __init__(self) -> None:
        self.leases: dict[tuple[str, str], TokenLease] = {}
        self.lock = Lock()

    def find(self, caller: str, resource: str) -> TokenLease:
        """Return the lease on a bucket, which may be new."""
        with self.lock:
            if len(self.leases) >= MAX_CACHED:
                self.leases.clear()
            return self.leases.setdefault((caller, resource), TokenLease())


_leases = process_state.slot(TokenLeases)


def take_token(caller: str, rate: Rate, limit: float) -> None:
    """Take one token of a caller.

    Raises:
        QuotaExceeded: when no token is left
        Busy: when another request of the caller takes too long to count.
    """
    lease = _leases.value.find(caller, rate.name)
    with _lock(lease):
        now = clock.now()
        if lease.limit != limit:
            lease.limit, lease.tokens, lease.refused_until = limit, 0, 0
        if now < lease.refused_until:
            raise _refusal(rate, limit, lease.refused_until - now)
        if not lease.tokens or not 0 <= lease.expires_at - now <= LEASE_MS:
            _renew(lease, caller, rate, now)
        lease.tokens -= 1


@contextmanager
def _lock(lease: TokenLease) -> Iterator[None]:
    # Without a timeout, two transactions that count one caller in different orders could wait for each other for ever.
    if not lease.lock.acquire(timeout=MAX_WAIT_SECONDS):
        raise Busy("The quota of the caller cannot be checked now.")
    try:
        yield
    finally:
        lease.lock.release()


def _renew(lease: TokenLease, caller: str, rate: Rate, now: int) -> None:
    """Return unused tokens to the bucket and take new ones.

    Raises:
        QuotaExceeded: when the bucket is empty.
    """
    is_used_up = not lease.tokens and now <= lease.expires_at
    size = min(lease.size * 2, max(1, int(lease.limit * MAX_SHARE))) if is_used_up else 1
    unused, lease.tokens = lease.tokens, 0
    granted, wait_ms = _exchange(caller, rate, lease.limit, size, unused)
    if not granted:
        lease.size, lease.refused_until = 1, now + wait_ms
        raise _refusal(rate, lease.limit, wait_ms)
    lease.tokens, lease.size, lease.expires_at = granted, size, now + LEASE_MS


def _exchange(caller: str, rate: Rate, limit: float, wanted: int, unused: int) -> tuple[int, int]:
    """Put `unused` tokens into the bucket and take up to `wanted`.

    Returns how many were taken, and the milliseconds until the next token if none was.
    """
    now, capacity, per_ms = clock.now(), max(1.0, limit), limit / rate.period_ms
    with transaction.atomic():
        buckets = TokenBucket.objects.select_for_update()
        bucket, _ = buckets.get_or_create(
            caller=caller, resource=rate.name, defaults={"tokens": capacity, "updated_at": now}
        )
        earned = max(0, now - bucket.updated_at) * per_ms
        available = min(capacity, bucket.tokens + unused + earned)
        granted = min(wanted, int(available))
        if granted:
            bucket.tokens, bucket.updated_at = available - granted, max(now, bucket.updated_at)
            bucket.save(update_fields=["tokens", "updated_at"])
    return granted, math.ceil((1 - available) / per_ms)


def _refusal(rate: Rate, limit: float, wait_ms: int) -> QuotaExceeded:
    return QuotaExceeded(f"The caller's quota of {limit:g} {rate.noun} is used up.", math.ceil(wait_ms / 1000))


def delete_idle_buckets() -> None:
    """Delete the rows of buckets that were not used for a while. They are full."""
    TokenBucket.objects.filter(updated_at__lt=clock.now() - IDLE_MS).delete()
