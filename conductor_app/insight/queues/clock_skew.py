"""Workers with wrong clocks, found by log lines that are stamped outside the time of their attempt."""

from ...models import Attempt, TaskLog
from ..durations import SECOND
from ..tasks.task_log import logged_at

SEARCHED_ROWS = 500
TOLERATED_MS = 5 * SECOND
FIELDS = ("pk", "worker", "claimed_at", "ended_at")


def clock_skews(now: int) -> dict[str, int]:
    """Return the clock skew in milliseconds of each worker that exceeds TOLERATED_MS. Positive means ahead.

    Reads the newest log lines, in two queries.
    """
    lines = list(TaskLog.objects.order_by("-pk").values_list("attempt_id", "at")[:SEARCHED_ROWS])
    rows = Attempt.objects.filter(pk__in={attempt_id for attempt_id, _ in lines}).exclude(worker="")
    leased = {id: (worker, claimed, ended) for id, worker, claimed, ended in rows.values_list(*FIELDS)}
    found: dict[str, int] = {}
    for attempt_id, at in lines:
        worker, claimed_at, ended_at = leased.get(attempt_id, ("", None, None))
        off = _distance(logged_at(at), claimed_at, ended_at or now) if worker and claimed_at else 0
        if abs(off) > TOLERATED_MS:
            found.setdefault(worker, off)
    return found


def _distance(at: int, first: int, last: int) -> int:
    """Return how far a time lies outside a span: negative before it, positive after it, 0 inside."""
    return min(at - first, 0) + max(at - last, 0)
