"""The rows of task groups, and of the queues and workers of standalone tasks."""

from collections.abc import Callable
from typing import Any

from django.db import transaction

from ...core.errors import Conflict, NotFound
from ...tasks.models import Queue, Worker
from ...utils import clock, process_state
from ...utils.process_state import Slot
from .. import store
from ..models import TaskGroup

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
LAST_MS = 253_402_300_799_999
"""The last time with a four-digit year, which clients require."""
NOTED_EVERY_MS = 1_800_000
"""The minimum interval between two records of the activity of a queue or worker."""
CHECK_INTERVAL_MS = 60_000
"""The minimum interval between two reads of such a row: a worker may poll several times per second."""
MAX_REMEMBERED = 10_000
TEN_YEARS_MS = 3_652 * DAY_MS
"""Age of the quarantine end that is stored for a worker that was never quarantined."""
MAX_LOGGED = 100
"""The maximum number of entries in the quarantine log of a worker."""


def join_group(task_id: str, id: str, scheduler_id: str, until: int) -> bool:
    """Add a task to its group, which is created with its first task and outlives all of them.

    Returns True if the task exists already.

    Raises:
        Conflict: when the group belongs to another scheduler, or is sealed.
    """
    expires_at = min(until + HOUR_MS, LAST_MS)
    group, is_there = store.load_group_for(task_id, id)
    if group is None:
        group = TaskGroup(id=id, scheduler_id=scheduler_id, created_at=clock.now(), expires_at=expires_at)
        group = group if store.insert_group(group) else find_group(id)
    if group.scheduler_id != scheduler_id:
        raise Conflict(f"Task group {id} belongs to the scheduler {group.scheduler_id}, not to {scheduler_id}.")
    if group.sealed_at is not None:
        raise Conflict(f"Task group {id} is sealed: it accepts no more tasks.")
    if group.expires_at < until:
        TaskGroup.objects.filter(pk=id, expires_at__lt=until).update(expires_at=expires_at)
    return is_there


def find_group(id: str) -> TaskGroup:
    """Return a task group.

    Raises:
        NotFound: when there is no such group.
    """
    group = TaskGroup.objects.filter(pk=id).first()
    if group is None:
        raise NotFound(f"Task group {id} does not exist.")
    return group


def record_queue(name: str, now: int, until: int = 0, seen: bool = True) -> None:
    """Record the use of a queue, and extend its expiry to `until`, by default one day from now.

    `seen`: a worker uses the queue. If False, the row is also written when only its expiry changes.
    """
    until = until or now + DAY_MS
    queue = Queue.objects.filter(pk=name).first()
    if queue is None:
        facts = {"name": name, "expires_at": until, "last_active_at": now}
        Queue.objects.bulk_create([Queue(**facts)], ignore_conflicts=True)
    elif queue.last_active_at + NOTED_EVERY_MS <= now or (not seen and queue.expires_at < until):
        Queue.objects.filter(pk=name).update(expires_at=max(queue.expires_at, until), last_active_at=now)


def record_queue_use(queue: str, now: int) -> None:
    """Record that a worker continues a task of a queue."""
    if _is_stale(now, queue):
        record_queue(queue, now)
        _read_at.value[queue,] = now


def record_worker(queue: str, group: str, name: str, now: int) -> None:
    """Record that a worker polls, at most once per NOTED_EVERY_MS for the worker and its queue."""
    if not _is_stale(now, queue, group, name):
        return
    worker = Worker.objects.filter(queue=queue, group=group, name=name).first()
    if worker is None:
        _add_worker(now, queue=queue, group=group, name=name, last_active_at=now, expires_at=now + DAY_MS)
        record_queue(queue, now)
    elif (worker.last_active_at or 0) + NOTED_EVERY_MS <= now:
        until = max(worker.expires_at, now + DAY_MS)
        Worker.objects.filter(pk=worker.pk).update(last_active_at=now, expires_at=until)
        record_queue(queue, now)
    _read_at.value[queue, group, name] = now


_read_at: Slot[dict[tuple[str, ...], int]] = process_state.slot(dict)
"""The time of this process's last read of the row of each queue and worker."""


def _is_stale(now: int, *who: str) -> bool:
    read_at = _read_at.value
    if len(read_at) > MAX_REMEMBERED:
        read_at.clear()
    return abs(now - read_at.get(who, -CHECK_INTERVAL_MS)) >= CHECK_INTERVAL_MS


def is_quarantined(queue: str, group: str, name: str, now: int) -> bool:
    """Return True if the worker is quarantined."""
    return Worker.objects.filter(queue=queue, group=group, name=name, quarantine_until__gt=now).exists()


def _add_worker(now: int, **facts: Any) -> None:
    worker = Worker(first_claim_at=now, quarantine_until=now - TEN_YEARS_MS, **facts)
    Worker.objects.bulk_create([worker], ignore_conflicts=True)


def _update_worker(queue: str, group: str, name: str, change: Callable[[Worker], None]) -> None:
    with transaction.atomic():
        found = Worker.objects.select_for_update().filter(queue=queue, group=group, name=name).first()
        if found is None:
            raise NotFound(f"Worker {group}/{name} of {queue} does not exist.")
        change(found)
        found.save()


def quarantine(queue: str, group: str, name: str, until: int, why: str, by: str) -> None:
    """Quarantine a worker until a time; a past one ends the quarantine.

    Raises:
        NotFound: when there is no such worker.
    """
    now = clock.now()

    def change(worker: Worker) -> None:
        line = {"by": by, "at": now, "until": until, "why": why}
        worker.quarantine_until, worker.expires_at = until, max(worker.expires_at, now + DAY_MS)
        worker.quarantine_log = [*worker.quarantine_log, line][-MAX_LOGGED:]

    _update_worker(queue, group, name, change)


def declare_worker(queue: str, group: str, name: str, until: int) -> Worker:
    """Create or extend a worker and its queue until at least `until`. Returns the worker, even if it has expired."""
    now = clock.now()
    record_queue(queue, now, until, seen=False)
    _add_worker(now, queue=queue, group=group, name=name, expires_at=until)
    found = Worker.objects.filter(queue=queue, group=group, name=name)
    found.filter(expires_at__lt=until).update(expires_at=until)
    return found.get()
