"""Pulse messages about standalone tasks and groups: saved with each transition, for an exchange or for API clients.

With an exchange, they are claimed in order per task, and deleted when the exchange has received them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction

from ...core.snapshot import NEVER, Attempt
from ...core.step_types.worker_tasks import EventStep
from ...runs.models import PulseMessage
from ...runs.store.writing import StatementBatch
from ...settings import conf
from ...taskcluster import store
from ...utils import clock
from ..core.snapshot import DEADLINE, Effect, PublishMessage, StandaloneTask
from ..models import TaskGroup
from ..queries.tasks import (
    NAMES_OF_PRIORITIES,
    format_timestamp,
    group_document,
    queue_facts,
    status_document,
    worker_facts,
)
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
