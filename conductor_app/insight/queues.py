"""How queues stand: what waits in them, what is out with workers, and who polls."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from django.db import connection
from django.db.models import Count, Exists, Max, OuterRef, Q

from ..core.step_types.queued import queue_name
from ..models import Attempt, Poller, TaskDefinition, WorkerHold

MOST_COUNTED = 10_000
"""Attempts of a queue that are counted, and looked at for the oldest: those that are handed out first."""
_PENDING_SQL = "FROM conductor_attempt a WHERE a.status = 'PENDING' AND NOT (a.queue = '')"
WAITING_SQL = f"""
WITH RECURSIVE names (queue) AS (
    SELECT MIN(a.queue) {_PENDING_SQL}
    UNION ALL
    SELECT (SELECT MIN(a.queue) {_PENDING_SQL} AND a.queue > n.queue) FROM names n WHERE n.queue IS NOT NULL
)
SELECT n.queue,
    (SELECT COUNT(*) FROM (SELECT 1 {_PENDING_SQL} AND a.queue = n.queue LIMIT %s) counted),
    (SELECT MIN(first.pending_since) FROM (
        SELECT a.pending_since {_PENDING_SQL} AND a.queue = n.queue
        ORDER BY a.priority DESC, a.visible_at, a.id LIMIT %s
    ) first)
FROM names n WHERE n.queue IS NOT NULL
"""
"""Leaps from queue to queue along the index of claims: it reads a bounded part of each, however much waits."""
QUIET_AFTER_MS = 60_000
"""A queue without a poll for so long has nobody: the longest poll that clients make by default is a fraction of it."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """One queue at this moment."""

    name: str
    pending: int = 0
    oldest_at: int | None = None
    leased: int = 0
    pollers: int = 0
    polled_at: int | None = None

    @property
    def has_more(self) -> bool:
        """Whether more wait than are counted."""
        return self.pending > MOST_COUNTED

    @property
    def counted(self) -> int:
        return min(self.pending, MOST_COUNTED)

    def is_polled(self, now: int) -> bool:
        return self.polled_at is not None and now - self.polled_at < QUIET_AFTER_MS

    def is_neglected(self, now: int) -> bool:
        """Whether work waits and nobody asks for it."""
        return bool(self.pending) and not self.is_polled(now)


def limits_used(states: Collection[QueueState]) -> dict[str, tuple[int, int]]:
    """For each queue whose task definition limits how many are worked on at a time: how many are, and the limit."""
    kinds = {queue.name: queue.name.rpartition(":")[2] for queue in states}
    rows = TaskDefinition.objects.filter(name__in=set(kinds.values()), concurrent_limit__gt=0)
    limits, used = dict(rows.values_list("name", "concurrent_limit")), Counter[str]()
    for queue in states:
        used[kinds[queue.name]] += queue.leased
    return {queue: (used[kind], limits[kind]) for queue, kind in kinds.items() if kind in limits}


def list_queues() -> list[QueueState]:
    """Every queue that holds work or was ever polled, those with the oldest work first."""
    pending, leased, polls = _pending_by_queue(), _leased_by_queue(), last_polls()
    names = {*pending, *leased, *polls}
    states = [
        QueueState(name, *pending.get(name, (0, None)), leased.get(name, 0), *polls.get(name, (0, None)))
        for name in names
    ]
    return sorted(states, key=lambda queue: (queue.oldest_at is None, queue.oldest_at or 0, queue.name))


def last_polls() -> dict[str, tuple[int, int]]:
    """For each queue: how many workers have polled it, and when the last did."""
    rows = Poller.objects.order_by().values_list("task_type", "domain").annotate(Count("pk"), Max("polled_at"))
    return {queue_name(task_type, domain): (count, at) for task_type, domain, count, at in rows}


@dataclass(frozen=True, slots=True)
class QueuePolls:
    """Who polls one queue: when the last poll was, how many workers poll now, and how many of them are drained."""

    polled_at: int | None = None
    alive: int = 0
    drained: int = 0


def polls_of(queue: str, now: int) -> QueuePolls:
    """The polls of one queue."""
    is_alive = Q(polled_at__gt=now - QUIET_AFTER_MS)
    is_drained = Exists(WorkerHold.objects.filter(worker=OuterRef("worker")))
    rows = Poller.objects.filter(_possible_polls(queue)).order_by().values("task_type", "domain")
    counted = rows.annotate(at=Max("polled_at"), alive=Count("pk", filter=is_alive))
    for row in counted.annotate(drained=Count("pk", filter=is_alive & is_drained)):
        if queue_name(row["task_type"], row["domain"]) == queue:
            return QueuePolls(row["at"], row["alive"], row["drained"])
    return QueuePolls()


def list_pollers(queue: str) -> list[Poller]:
    """Every worker that has polled the queue, the last one first."""
    rows = Poller.objects.filter(_possible_polls(queue)).order_by("-polled_at", "worker")
    return [row for row in rows if queue_name(row.task_type, row.domain) == queue]


def _possible_polls(queue: str) -> Q:
    """The polls that may be of this queue: a task type may hold a colon of its own."""
    domain, _, task_type = queue.partition(":")
    return Q(task_type=queue, domain="") | Q(task_type=task_type, domain=domain)


def _pending_by_queue() -> dict[str, tuple[int, int]]:
    """Of each queue in which something waits: how many, up to a bound, and since when the first of these wait."""
    with connection.cursor() as cursor:
        cursor.execute(WAITING_SQL, [MOST_COUNTED + 1, MOST_COUNTED + 1])
        return {queue: (count, at) for queue, count, at in cursor.fetchall()}


def _leased_by_queue() -> dict[str, int]:
    return dict(Attempt.objects.leased().order_by().values_list("queue").annotate(Count("pk")))
