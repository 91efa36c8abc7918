"""Delay before the next attempt (execution §3.1)."""

from .definition import EXPONENTIAL, LINEAR, Policy

MAX_SECONDS = 2**31 - 1


def delay_seconds(policy: Policy, failed_number: int) -> int:
    """Return the seconds to wait after attempt `failed_number` (0 is the first) failed, without jitter."""
    delay = _exponential_delay(policy, failed_number)
    if policy.max_delay_seconds > 0:
        delay = min(delay, policy.max_delay_seconds)
    return min(delay, MAX_SECONDS)


def _exponential_delay(policy: Policy, number: int) -> int:
    if policy.logic == LINEAR:
        return policy.delay_seconds * policy.scale * (number + 1)
    if policy.logic == EXPONENTIAL and policy.scale > 1:
        # This is the documented formula. Conductor's server doubles the delay, ignoring the factor.
        return policy.delay_seconds * policy.scale ** min(number + 1, 64)
    if policy.logic == EXPONENTIAL:
        return policy.delay_seconds * 2 ** min(number, 64)
    return policy.delay_seconds


def jitter_ms(policy: Policy, share: float) -> int:
    """Return the milliseconds to add to the delay. `share`: a random number in [0, 1)."""
    return int(share * (policy.jitter_ms + 1)) if policy.jitter_ms > 0 else 0
