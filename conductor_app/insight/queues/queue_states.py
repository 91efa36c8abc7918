"""State of queues: pending attempts, attempts in progress, and polling workers."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet

from ...core.step_types.queued import queue_name
from ...models import Attempt, Poller, TaskDefinition, WorkerHold

MAX_COUNTED = 10_000
"""Attempts of a queue that are counted and searched for the oldest, in claim order."""
_PENDING_SQL = "FROM conductor_attempt a WHERE a.status = 'PENDING' AND NOT (a.queue = '')"
QUEUES_SQL = f"""
WITH RECURSIVE names (queue) AS (
    SELECT MIN(a.queue) {_PENDING_SQL}
    UNION ALL
    SELECT (SELECT MIN(a.queue) {_PENDING_SQL} AND a.queue > n.queue) FROM names n WHERE n.queue IS NOT NULL
)
SELECT 'pending' AS kind, n.queue, '' AS domain,
    (SELECT COUNT(*) FROM (SELECT 1 {_PENDING_SQL} AND a.queue = n.queue LIMIT %s) counted),
    (SELECT MIN(first.pending_since) FROM (
        SELECT a.pending_since {_PENDING_SQL} AND a.queue = n.queue
        ORDER BY a.priority DESC, a.visible_at, a.id LIMIT %s
    ) first)
FROM names n WHERE n.queue IS NOT NULL
UNION ALL
SELECT 'leased', a.queue, '', COUNT(*), 0
FROM conductor_attempt a WHERE a.status = 'LEASED' AND NOT (a.queue = '') GROUP BY a.queue
UNION ALL
SELECT 'polled', p.task_type, p.domain, COUNT(*), MAX(p.polled_at)
FROM conductor_poller p GROUP BY p.task_type, p.domain
"""
"""Numbers and times of pending attempts, attempts in progress and polling workers.

It jumps from queue to queue in the claim index, so that it reads a bounded part of each queue.
"""
QUIET_AFTER_MS = 60_000
"""A queue without a poll for this long counts as unpolled. Long polls of clients are much shorter by default."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """Current state of one queue."""

    name: str
    pending: int = 0
    oldest_at: int | None = None
    leased: int = 0
    pollers: int = 0
    polled_at: int | None = None

    @property
    def has_more(self) -> bool:
        """True if more attempts are pending than were counted."""
        return self.pending > MAX_COUNTED

    @property
    def counted(self) -> int:
        return min(self.pending, MAX_COUNTED)

    def is_polled(self, now: int) -> bool:
        return self.polled_at is not None and now - self.polled_at < QUIET_AFTER_MS

    def is_neglected(self, now: int) -> bool:
        """Return True if attempts are pending and no worker polls."""
        return bool(self.pending) and not self.is_polled(now)


def limits_used(states: Collection[QueueState]) -> dict[str, tuple[int, int]]:
    """Return attempts in progress and the limit for each queue with a concurrent execution limit."""
    kinds = {queue.name: queue.name.rpartition(":")[2] for queue in states}
    rows = TaskDefinition.objects.filter(name__in=set(kinds.values()), concurrent_limit__gt=0)
    limits, used = dict(rows.values_list("name", "concurrent_limit")), Counter[str]()
    for queue in states:
        used[kinds[queue.name]] += queue.leased
    return {queue: (used[kind], limits[kind]) for queue, kind in kinds.items() if kind in limits}


def rate_limits(states: Collection[QueueState]) -> dict[str, float]:
    """Return the limit of starts per second for each queue whose task definition has one."""
    kinds = {queue.name: queue.name.rpartition(":")[2] for queue in states}
    rows = TaskDefinition.objects.filter(name__in=set(kinds.values()), rate_count__gt=0, rate_seconds__gt=0)
    limits = {name: count / seconds for name, count, seconds in rows.values_list("name", "rate_count", "rate_seconds")}
    return {queue: limits[kind] for queue, kind in kinds.items() if kind in limits}


def list_queues() -> list[QueueState]:
    """Return every queue that has attempts or was ever polled, the one with the oldest pending attempt first.

    Runs one query.
    """
    found: dict[str, dict[str, tuple[int, int]]] = {"pending": {}, "leased": {}, "polled": {}}
    with connection.cursor() as cursor:
        cursor.execute(QUEUES_SQL, [MAX_COUNTED + 1, MAX_COUNTED + 1])
        for kind, name, domain, count, at in cursor.fetchall():
            found[kind][queue_name(name, domain)] = (count, at)
    pending, leased, polls = found.values()
    states = [
        QueueState(name, *pending.get(name, (0, None)), leased.get(name, (0, 0))[0], *polls.get(name, (0, None)))
        for name in {*pending, *leased, *polls}
    ]
    return sorted(states, key=lambda queue: (queue.oldest_at is None, queue.oldest_at or 0, queue.name))


def count_blocked_runs(names: Sequence[str]) -> dict[str, int]:
    """Return how many runs wait in each of these queues, from MAX_COUNTED attempts."""
    waiting = Attempt.objects.pending().of_runs().filter(queue__in=names).values_list("queue", "run_id")
    return dict(Counter(queue for queue, _ in set(waiting.order_by()[:MAX_COUNTED])))


def last_polls() -> dict[str, tuple[int, int]]:
    """Return the number of workers that have polled each queue, and the time of the last poll."""
    rows = Poller.objects.order_by().values_list("task_type", "domain").annotate(Count("pk"), Max("polled_at"))
    return {queue_name(task_type, domain): (count, at) for task_type, domain, count, at in rows}


@dataclass(frozen=True, slots=True)
class QueuePolls:
    """Polls of one queue: time of the last poll, workers polling now, and how many of those are draining."""

    polled_at: int | None = None
    alive: int = 0
    drained: int = 0


def polls_of(queue: str, now: int) -> QueuePolls:
    """Return the polls of one queue."""
    row = grouped_polls(queue, now).first()
    return QueuePolls(row["at"], row["alive"], row["drained"]) if row else QueuePolls()


def grouped_polls(queue: str, now: int) -> QuerySet[Poller, dict[str, Any]]:
    """Return the columns of QueuePolls (`at`, `alive`, `drained`) for one queue: one row, or none."""
    is_alive = Q(polled_at__gt=now - QUIET_AFTER_MS)
    is_drained = Exists(WorkerHold.objects.filter(worker=OuterRef("worker")))
    rows = Poller.objects.filter(_possible_polls(queue)).order_by().values("task_type", "domain")
    counted = rows.annotate(at=Max("polled_at"), alive=Count("pk", filter=is_alive))
    return counted.annotate(drained=Count("pk", filter=is_alive & is_drained)).order_by("-at")


def list_pollers(queue: str) -> list[Poller]:
    """Return every worker that has polled the queue, most recent poll first."""
    rows = Poller.objects.filter(_possible_polls(queue)).order_by("-polled_at", "worker")
    return [row for row in rows if queue_name(row.task_type, row.domain) == queue]


def _possible_polls(queue: str) -> Q:
    """Select polls that may belong to this queue. A task type can itself contain a colon."""
    domain, _, task_type = queue.partition(":")
    return Q(task_type=queue, domain="") | Q(task_type=task_type, domain=domain)
