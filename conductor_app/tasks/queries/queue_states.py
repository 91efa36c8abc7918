"""States of queues: their attempts, their polls and their limits."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet

from ...core.step_types.base import queue_name
from ...db.database import connection
from ...definitions.models import TaskDefinition
from ...runs.models import Attempt
from ...utils import clock
from ..models import Poller, QueueHold, WorkerHold

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
    (SELECT COUNT(*) FROM (SELECT 1 {_PENDING_SQL} AND a.queue = n.queue LIMIT %(limit)s) counted),
    (SELECT MIN(first.pending_since) FROM (
        SELECT a.pending_since, a.visible_at {_PENDING_SQL} AND a.queue = n.queue
        ORDER BY a.priority DESC, a.visible_at, a.id LIMIT %(limit)s
    ) first WHERE first.visible_at <= %(now)s),
    (SELECT COUNT(*) FROM (SELECT a.visible_at {_PENDING_SQL} AND a.queue = n.queue LIMIT %(limit)s) counted
     WHERE counted.visible_at > %(now)s)
FROM names n WHERE n.queue IS NOT NULL
UNION ALL
SELECT 'leased', a.queue, '', COUNT(*), 0, 0
FROM conductor_attempt a WHERE a.status = 'LEASED' AND NOT (a.queue = '') GROUP BY a.queue
UNION ALL
SELECT 'polled', p.task_type, p.domain, SUM(CASE WHEN p.polled_at > %(alive)s THEN 1 ELSE 0 END), MAX(p.polled_at), 0
FROM conductor_poller p GROUP BY p.task_type, p.domain
"""
"""Numbers and times of pending attempts, attempts in progress and polling workers.

It jumps from queue to queue in the claim index, so that it reads a bounded part of each queue.
"""
QUIET_AFTER_MS = 60_000
"""A queue without a poll for this long counts as unpolled. Long polls of clients are much shorter by default."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """Current state of one queue. `pending`: attempts that are due; `delayed`: those that become due later."""

    name: str
    pending: int = 0
    delayed: int = 0
    oldest_at: int | None = None
    leased: int = 0
    pollers: int = 0
    polled_at: int | None = None

    @property
    def has_more(self) -> bool:
        """True if more attempts are pending or delayed than were counted."""
        return self.pending + self.delayed > MAX_COUNTED

    @property
    def counted(self) -> int:
        return min(self.pending, MAX_COUNTED)

    def is_polled(self, now: int) -> bool:
        return self.polled_at is not None and now - self.polled_at < QUIET_AFTER_MS

    def is_neglected(self, now: int) -> bool:
        """Return True if attempts are due and no worker polls."""
        return bool(self.pending) and not self.is_polled(now)


def queues_without_workers(states: Iterable[QueueState], now: int) -> list[QueueState]:
    """Return the queues with due attempts that no worker polls and that are not paused. Runs at most one query."""
    unpolled = [queue for queue in states if queue.is_neglected(now)]
    holds = QueueHold.objects.filter(pk__in=[queue.name for queue in unpolled], until_at__gt=now)
    paused = set(holds.values_list("pk", flat=True)) if unpolled else set()
    return [queue for queue in unpolled if queue.name not in paused]


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
    found: dict[str, dict[str, tuple[int, int | None, int]]] = {"pending": {}, "leased": {}, "polled": {}}
    with connection.cursor() as cursor:
        now = clock.now()
        cursor.execute(QUEUES_SQL, {"limit": MAX_COUNTED + 1, "now": now, "alive": now - QUIET_AFTER_MS})
        for kind, name, domain, *numbers in cursor.fetchall():
            found[kind][queue_name(name, domain)] = tuple(numbers)
    pending, leased, polls = found.values()
    none = (0, None, 0)
    states = [
        QueueState(name, waiting - delayed, delayed, oldest_at, leased.get(name, none)[0], pollers, polled_at)
        for name in {*pending, *leased, *polls}
        for waiting, oldest_at, delayed in (pending.get(name, none),)
        for pollers, polled_at, _zero in (polls.get(name, none),)
    ]
    return sorted(states, key=lambda queue: (queue.oldest_at is None, queue.oldest_at or 0, queue.name))


def count_blocked_runs(names: Sequence[str]) -> dict[str, int]:
    """Return how many runs wait in each of these queues, from MAX_COUNTED attempts."""
    waiting = Attempt.objects.pending().of_runs().filter(queue__in=names).values_list("queue", "run_id")
    return dict(Counter(queue for queue, _ in set(waiting.order_by()[:MAX_COUNTED])))


@dataclass(frozen=True, slots=True)
class QueuePolls:
    """Polls of one queue: time of the last poll, workers polling now, and how many of those are draining."""

    polled_at: int | None = None
    alive: int = 0
    drained: int = 0

    def are_recent(self, now: int) -> bool:
        return self.polled_at is not None and now - self.polled_at < QUIET_AFTER_MS

    @property
    def are_of_draining_workers(self) -> bool:
        return bool(self.alive) and self.drained == self.alive


def polls_of_queues(now: int) -> dict[str, QueuePolls]:
    """Return the polls of every queue. Runs one query."""
    return {
        queue_name(row["task_type"], row["domain"]): QueuePolls(row["at"], row["alive"], row["drained"])
        for row in _count_polls(Poller.objects.all(), now)
    }


def grouped_polls(queue: str, now: int) -> QuerySet[Poller, Any]:
    """Return the columns of QueuePolls (`at`, `alive`, `drained`) for one queue: one row, or none."""
    return _count_polls(Poller.objects.filter(_possible_polls(queue)), now)


def _count_polls(rows: QuerySet[Poller], now: int) -> QuerySet[Poller, Any]:
    is_alive = Q(polled_at__gt=now - QUIET_AFTER_MS)
    is_drained = Exists(WorkerHold.objects.filter(worker=OuterRef("worker")))
    counted = rows.order_by().values("task_type", "domain").annotate(at=Max("polled_at"))
    counted = counted.annotate(alive=Count("pk", filter=is_alive), drained=Count("pk", filter=Q(is_alive, is_drained)))
    return counted.order_by("-at")


def list_pollers(queue: str) -> list[Poller]:
    """Return every worker that has polled the queue, most recent poll first."""
    rows = Poller.objects.filter(_possible_polls(queue)).order_by("-polled_at", "worker")
    return [row for row in rows if queue_name(row.task_type, row.domain) == queue]


def _possible_polls(queue: str) -> Q:
    """Select polls that may belong to this queue. A task type can itself contain a colon."""
    domain, _, task_type = queue.partition(":")
    return Q(task_type=queue, domain="") | Q(task_type=task_type, domain=domain)
