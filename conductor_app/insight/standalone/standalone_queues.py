"""Queues and workers of standalone tasks: pending and claimed attempts, provisioners, workers."""

from collections.abc import Iterable, Sequence

from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Concat, Left, StrIndex
from django.db.models.lookups import Exact

from ...core.errors import NotFound
from ...models import Attempt, PulseMessage, Queue, StandaloneTask, Worker
from ...models.snapshots import read_snapshot

MAX_SHOWN = 200
"""Pulse messages that a page shows."""
RECENT = 20
"""Attempts that a worker page shows."""


def standalone_attempts(status: str, queues: Iterable[str]) -> QuerySet[Attempt]:
    """Return the attempts of standalone tasks in a status."""
    return Attempt.objects.defer_payloads().filter(run__isnull=True, status=status, queue__in=list(queues))


def pending_attempts(queues: Iterable[str], now: int) -> QuerySet[Attempt]:
    """Return the pending attempts whose deadline has not passed."""
    return standalone_attempts("PENDING", queues).filter(ends_at__gt=now)


@read_snapshot()
def queue_counts(queues: Sequence[str], now: int) -> list[tuple[str, int, int]]:
    """Return the number of pending and of claimed attempts of each queue."""
    waiting, out = (
        dict(rows.order_by().values_list("queue").annotate(Count("pk")))
        for rows in (pending_attempts(queues, now), standalone_attempts("LEASED", queues))
    )
    return [(queue, waiting.get(queue, 0), out.get(queue, 0)) for queue in queues]


def oldest_first(rows: QuerySet[Attempt], moment: str, after: Sequence, count: int) -> list[Attempt]:
    """Return `count` attempts with their tasks, ordered by a time column, after a position."""
    if after:
        rows = rows.filter(Q(**{f"{moment}__gt": after[0]}) | Q(**{moment: after[0], "id__gt": after[1]}))
    return list(rows.order_by(moment, "id").select_related("task__standalone")[:count])


def queues_of(provisioner: str) -> QuerySet[Queue]:
    """Return the queues of a provisioner. Their names start with its name and a slash."""
    prefix = f"{provisioner}/"
    # Not `startswith`: it ignores case on SQLite.
    return Queue.objects.filter(Exact(Left("name", len(prefix)), prefix))


def provisioners(after: Sequence[str] = (), only: str = "") -> QuerySet:
    """Return (name, expires_at, last_active_at) of each provisioner, derived from its queues: there is no table."""
    rows = queues_of(only) if only else Queue.objects.all()
    named = rows.annotate(provisioner=Left("name", StrIndex("name", Value("/")) - 1))
    if after:
        named = named.filter(provisioner__gt=after[0])
    grouped = named.values("provisioner").annotate(Max("expires_at"), Max("last_active_at"))
    return grouped.order_by("provisioner").values_list("provisioner", "expires_at__max", "last_active_at__max")


def find_queue(name: str) -> Queue:
    """Return a queue.

    Raises:
        NotFound: when there is no such queue.
    """
    return Queue.objects.filter(pk=name).first() or _not_found(f"Task queue {name} does not exist.")


def workers(queue: str, now: int) -> QuerySet[Worker]:
    """Return the workers of a queue, each with the id of its `latest` attempt.

    An expired worker is included only while it is quarantined.
    """
    latest = Attempt.objects.filter(run__isnull=True, queue=OuterRef("queue"), worker=OuterRef("full_name"))
    latest = latest.exclude(worker="").order_by("-claimed_at", "-id").values("id")[:1]
    seen = Worker.objects.filter(Q(expires_at__gt=now) | Q(quarantine_until__gt=now), queue=queue)
    return seen.annotate(full_name=Concat("group", Value("/"), "name")).annotate(latest=Subquery(latest))


def find_worker(queue: str, group: str, name: str, now: int) -> Worker:
    """Return a worker of a queue.

    Raises:
        NotFound: when there is no such queue or worker.
    """
    find_queue(queue)
    found = workers(queue, now).filter(group=group, name=name).first()
    return found or _not_found(f"Worker {group}/{name} of {queue} does not exist.")


def recent_attempts(worker: Worker) -> list[tuple[str, int]]:
    """Return task id and number of the attempts that a worker claimed last, newest at the end."""
    rows = Attempt.objects.filter(run__isnull=True, queue=worker.queue, worker=str(worker)).exclude(worker="")
    return list(rows.order_by("-claimed_at", "-id").values_list("task_id", "number")[:RECENT])[::-1]


def latest_of(found: Iterable[Worker]) -> dict[str, Attempt]:
    """Return the latest attempts of workers, by attempt id."""
    return Attempt.objects.only("task_id", "number").in_bulk([each.latest for each in found if each.latest])


def group_rows(group_id: str) -> QuerySet[StandaloneTask]:
    """Return the tasks of a group with their attempts."""
    return StandaloneTask.objects.filter(group_id=group_id).with_attempts()


def messages_of(task_id: str) -> list[PulseMessage]:
    """Return the Pulse messages about a task, oldest first."""
    return list(PulseMessage.objects.filter(task_id=task_id).order_by("id").only("name", "sent_at", "key")[:MAX_SHOWN])


def _not_found(message: str):
    raise NotFound(message)
