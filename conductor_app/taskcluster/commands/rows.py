"""Rows of task groups, of the queues and workers of standalone tasks, and Pulse messages about them.

A Pulse message is saved with each transition, for an exchange or for API clients. With an exchange, messages are
claimed in order per task, and deleted when the exchange has received them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...core.errors import Conflict, NotFound
from ...core.snapshot import NEVER, Attempt
from ...core.step_types.worker_tasks import EventStep
from ...db.database import transaction
from ...runs.models import PulseMessage
from ...runs.store.writing import StatementBatch
from ...settings import conf
from ...tasks.models import Queue, Worker
from ...utils import clock, process_state
from ...utils.process_state import Slot
from .. import store
from ..core.snapshot import DEADLINE, Effect, PublishMessage, StandaloneTask
from ..models import TaskGroup
from ..queries import NAMES_OF_PRIORITIES, format_timestamp, group_document, queue_facts, status_document, worker_facts
from ..store import NewPulseMessage

PUBLISHERS = EventStep.type
"""The queue of the built-in worker that publishes messages."""
EMPTY_WORD = "_"
ARTIFACT_CREATED = "artifact-created"


def pulse_messages_of(before: StandaloneTask, effects: Iterable[Effect], now: int) -> list[NewPulseMessage]:
    """Return the Pulse messages of the effects, each with the task at that point."""
    standalone, messages = before, []
    for effect in effects:
        standalone = effect.after(standalone)
        if isinstance(effect, PublishMessage) and (name := _message_name(effect.about)):
            messages.append(pulse_message(standalone, name, effect, now))
    return messages


def _message_name(about: str) -> str:
    """Return the name of a message; empty for a retried run, unless the settings enable it."""
    if about == "retried":
        return "task-exception" if conf.taskcluster_exception_messages == "every" else ""
    return f"task-{about}"


def pulse_message(standalone: StandaloneTask, name: str, effect: PublishMessage, now: int) -> NewPulseMessage:
    """Return a Pulse message about a task."""
    attempt = None if effect.number is None else standalone.attempts[effect.number]
    payload: dict[str, Any] = {"version": 1, "status": status_document(standalone)}
    if effect.about == "priority-changed":
        priorities = {"old": "oldPriority", "new": "newPriority"}
        payload |= {word: NAMES_OF_PRIORITIES[effect.facts[kind]] for kind, word in priorities.items()}
    elif effect.about == ARTIFACT_CREATED:
        payload |= effect.facts
    else:
        payload["task"] = {"tags": dict(standalone.tags)}
    payload |= _run_facts(attempt, name)
    key, routes = _routing_key(standalone, attempt), [f"route.{route}" for route in standalone.routes]
    return NewPulseMessage(
        task_id=standalone.id, group_id=standalone.group_id, name=name, key=key, routes=routes, payload=payload,
        sent_at=now, due_at=publish_due_at(now),
    )  # fmt: skip


def _run_facts(attempt: Attempt | None, name: str) -> dict[str, Any]:
    if attempt is None:
        return {}
    facts: dict[str, Any] = {"runId": attempt.number}
    # Taskcluster omits the worker of an attempt that the deadline resolved.
    if name != "task-pending" and attempt.reason != DEADLINE:
        facts |= worker_facts(attempt.worker)
    if name == "task-running":
        facts["takenUntil"] = format_timestamp(attempt.lease_ends_at or 0)
    return facts


def _routing_key(standalone: StandaloneTask, attempt: Attempt | None) -> str:
    worker = worker_facts(attempt.worker if attempt is not None else "")
    queue = queue_facts(standalone.queue)
    words = (
        "primary", standalone.id, EMPTY_WORD if attempt is None else attempt.number,
        worker.get("workerGroup", EMPTY_WORD), worker.get("workerId", EMPTY_WORD),
        queue["provisionerId"], queue["workerType"], standalone.scheduler_id, standalone.group_id, EMPTY_WORD,
    )  # fmt: skip
    return ".".join(map(str, words))


def group_message(group: TaskGroup, name: str, now: int, **facts: Any) -> NewPulseMessage:
    """Return a Pulse message about a group."""
    key = f"primary.{group.id}.{group.scheduler_id}.{EMPTY_WORD}"
    payload = {"version": 1, **(facts or group_document(group))}
    return NewPulseMessage("", group.id, name, key, (), payload, sent_at=now, due_at=publish_due_at(now))


def publish_due_at(now: int) -> int:
    """Return the time at which a message is published; NEVER without an exchange, where clients read the row."""
    return now if conf.taskcluster_amqp_url else NEVER


def to_wire(notices: Sequence[PulseMessage]) -> list[dict[str, Any]]:
    """Return messages in the form in which an exchange receives them."""
    return [
        {"exchange": exchange_name(n.name), "routingKey": n.key, "cc": n.routes, "payload": n.payload} for n in notices
    ]


def exchange_name(name: str) -> str:
    """Return the topic exchange of a kind of message."""
    return f"exchange/taskcluster-queue/v1/{name}"


CLAIM_MS = 60_000
"""The period in which a claimed message belongs to its publisher. After it another one can claim the message."""
MAX_RETRY_DELAY_MS = 60_000


def take_due(count: int) -> list[PulseMessage]:
    """Claim up to `count` due messages for CLAIM_MS, of each task only the first. Returns them in order."""
    now = clock.now()
    with transaction.atomic():
        ids = store.claim_due(now, now + CLAIM_MS, count)
    return list(PulseMessage.objects.filter(pk__in=ids).order_by("id"))


def mark_delivered(messages: Sequence[PulseMessage]) -> None:
    """Delete messages that the exchange has received."""
    store.delete_messages([message.pk for message in messages])


def mark_failed(messages: Sequence[PulseMessage], why: str) -> None:
    """Schedule the next try of messages with exponential backoff. Later messages of the same tasks wait for them."""
    for message in messages:
        due_at = clock.now() + min(1000 * 2 ** min(message.tries, 10), MAX_RETRY_DELAY_MS)
        store.schedule_retry(message.pk, message.tries + 1, due_at, why[:2000])


def publish_group_message(group: TaskGroup, name: str, now: int, **facts: object) -> None:
    """Save a Pulse message about a group."""
    writes = StatementBatch()
    store.insert_pulse_messages(writes, [group_message(group, name, now, **facts)], repeats=True)
    writes.send()


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


def quarantine(queue: str, group: str, name: str, until: int, why: str, by: str) -> None:
    """Quarantine a worker until a time; a past one ends the quarantine."""
    now = clock.now()

    def change(worker: Worker) -> None:
        line = {"by": by, "at": now, "until": until, "why": why}
        worker.quarantine_until, worker.expires_at = until, max(worker.expires_at, now + DAY_MS)
        worker.quarantine_log = [*worker.quarantine_log, line][-MAX_LOGGED:]

    _update_worker(queue, group, name, change)


def _update_worker(queue: str, group: str, name: str, change: Callable[[Worker], None]) -> None:
    with transaction.atomic():
        found = Worker.objects.select_for_update().filter(queue=queue, group=group, name=name).first()
        if found is None:
            raise NotFound(f"Worker {group}/{name} of {queue} does not exist.")
        change(found)
        found.save()


def declare_worker(queue: str, group: str, name: str, until: int) -> Worker:
    """Create or extend a worker and its queue until at least `until`. Returns the worker, even if it has expired."""
    now = clock.now()
    record_queue(queue, now, until, seen=False)
    _add_worker(now, queue=queue, group=group, name=name, expires_at=until)
    found = Worker.objects.filter(queue=queue, group=group, name=name)
    found.filter(expires_at__lt=until).update(expires_at=until)
    return found.get()
