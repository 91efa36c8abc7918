"""Estimates of when attempts are dispatched: from the rate of their queue, and from the gates that they must pass."""

from ...core.snapshot import NEVER
from ...models.gates import GateFacts


def cap_rate(rate: float | None, facts: GateFacts) -> float | None:
    """Return the recent rate of a queue in attempts per second, but at most the rate that its limit allows.

    Shortly after the first starts, the recent rate is above the limit.
    """
    if rate is None or not _has_rate_limit(facts):
        return rate
    return min(rate, facts.rate_count / facts.rate_seconds)


def earliest_dispatch_ms(place: int, facts: GateFacts) -> int | None:
    """Return how long the gates keep the attempt at a place (from 1) waiting, in milliseconds from now.

    None if that is unknown, for example if its queue is paused without an end. The facts may be those of another
    attempt of the queue. A concurrency limit delays nothing here: when a worker reports is unknown.
    """
    if facts.is_run_held or facts.ends_at <= facts.now or facts.queue_held_until >= NEVER:
        return None
    return max(0, facts.visible_at - facts.now, facts.queue_held_until - facts.now, _rate_limit_delay_ms(place, facts))


def estimate_dispatch_ms(place: int, rate: float | None, facts: GateFacts) -> int | None:
    """Return when the attempt at a place will be dispatched, in milliseconds from now; None if that is unknown."""
    rate, earliest = cap_rate(rate, facts), earliest_dispatch_ms(place, facts)
    return None if not rate or earliest is None else max(round(place / rate * 1000), earliest)


def _has_rate_limit(facts: GateFacts) -> bool:
    return facts.rate_count > 0 and facts.rate_seconds > 0


def _rate_limit_delay_ms(place: int, facts: GateFacts) -> int:
    """Return when the rate limit lets the attempt at a place pass: each start frees its slot after one window."""
    if not _has_rate_limit(facts):
        return 0
    window = facts.rate_seconds * 1000
    windows, slot = divmod(place - 1, facts.rate_count)
    unused = facts.rate_count - len(facts.start_times)
    free_at = facts.start_times[slot - unused] + window if slot >= unused else facts.now
    return max(free_at - facts.now, 0) + windows * window
