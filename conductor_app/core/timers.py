"""Timers of an attempt and of a run (execution §4): `pollTimeoutSeconds`, `responseTimeoutSeconds` and the others.

The earliest timer of an attempt, also the end of a wait, is its column `due_at`, which a decision sets with the attempt
(`next_timer`), and a claim by the fragment `lease` of `tasks/claims.sql`, which has the same timers of a leased
attempt: a poll timeout counts until the claim, which starts the response timeout. When the time has come, the sweep
`handle_due_timers` of `processes/sweeps.py` evaluates the rules of the run without a command, and the rule `time_out`
of `core/rules/retries_and_timeouts.py` follows the policy of the task.
"""

from collections.abc import Iterator
from typing import NamedTuple

from .definition import Policy
from .snapshot import NEVER, Attempt, Run, Task
from .states import LEASED, PENDING


class Timer(NamedTuple):
    """One limit of an attempt: when it is reached, its name, and its length in seconds."""

    at: int
    name: str
    seconds: int


def timers_of(policy: Policy, attempt: Attempt) -> Iterator[Timer]:
    """Yield the limits that apply to an open attempt, in the order in which they are checked (execution §4.1)."""
    if attempt.total_ends_at != NEVER:
        yield Timer(attempt.total_ends_at, "total", policy.total_seconds)
    if attempt.timeout_ms and attempt.started_at is not None:
        yield Timer(attempt.started_at + attempt.delay_ms + attempt.timeout_ms, "task", policy.timeout_seconds)
    if attempt.status == PENDING and policy.poll_seconds:
        yield Timer(_poll_ends_at(policy, attempt), "poll", policy.poll_seconds)
    if attempt.status == LEASED and attempt.lease_ends_at is not None:
        yield Timer(attempt.lease_ends_at, "response", policy.lease_seconds)


def _poll_ends_at(policy: Policy, attempt: Attempt) -> int:
    """Return when a pending attempt times out for lack of a poll (execution §4.6 A).

    A delay counts twice, as in Conductor: as `delay_ms` and as `callback_ms`; once if the attempt was held before.
    After a release the timeout starts again (execution §11 row 20).
    """
    first_wait = attempt.pending_since == attempt.scheduled_at
    delay = attempt.delay_ms if first_wait else 0
    return attempt.pending_since + delay + attempt.callback_ms + policy.poll_seconds * 1000


def next_timer(policy: Policy, attempt: Attempt, after: int = 0) -> int:
    """Return the next time later than `after` at which a timer of the attempt expires, or NEVER."""
    moments = [attempt.ends_at, *(clock.at for clock in timers_of(policy, attempt))]
    return min((moment for moment in moments if moment > after), default=NEVER)


def run_ends_at(run: Run) -> int:
    """Return when the run itself times out, or NEVER (execution §4.5)."""
    if not (run.definition.timeout_seconds and run.definition.times_out):
        return NEVER
    return max(run.last_retried_at, run.created_at) + run.definition.timeout_seconds * 1000


def next_run_timer(run: Run, now: int) -> int:
    """Return the time of the run's timer: its scheduled start if that is in the future, otherwise its timeout.

    The end of a stop at a breakpoint may come earlier.
    """
    ends_at = run.created_at if run.begins_later(now) else run_ends_at(run)
    stops = run.debug.get("stops")
    return min(ends_at, *(stop["until"] for stop in stops.values())) if stops else ends_at


def is_due(task: Task, now: int) -> bool:
    """Return True if a timer of the task's open attempt has expired."""
    return task.is_open and task.attempt.is_open and task.attempt.due_at <= now
