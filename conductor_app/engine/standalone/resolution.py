"""Consequences of the resolution of a standalone task: Pulse messages about its group, and messages to dependents."""

from collections.abc import Iterable, Sequence
from functools import partial

from django.db import transaction

from ... import clock
from ...core.standalone.effects import Effect, PublishResolution
from ...core.standalone.snapshot import StandaloneTask
from ...models import Message
from ...store import dependencies, outbox_messages, standalone_tasks, task_groups
from ...store.pulse_messages import NewPulseMessage
from ...store.statement_batch import StatementBatch
from ..delivery import deliver_after_commit
from .pulse_messages import group_message

GROUP_RESOLVED = "task-group-resolved"


def publish_group_resolved(
    writes: StatementBatch, before: StandaloneTask, effects: Iterable[Effect], now: int
) -> list[NewPulseMessage]:
    """Return the message that the group is resolved, if this task was its last one.

    If other tasks are open, a check of the group is enqueued instead, because they may be resolved concurrently.
    """
    if not _resolutions(effects):
        return []
    if before.group_has_unresolved:
        task_groups.insert_check_message(writes, before.group_id, now)
        return []
    return _publish_resolved(writes, before.group_id, now)


def _publish_resolved(writes: StatementBatch, group_id: str, now: int) -> list[NewPulseMessage]:
    task_groups.delete_check_messages(writes, group_id)
    group = task_groups.load_group(group_id)
    return [group_message(group, GROUP_RESOLVED, now)] if group is not None else []


def handle_group_check(message: Message) -> None:
    """Publish that a group is resolved, if it is: its last tasks were resolved concurrently."""
    with transaction.atomic():
        if outbox_messages.consume(message.pk) and task_groups.is_resolved(message.to):
            writes = StatementBatch()
            standalone_tasks.insert_pulse_messages(writes, _publish_resolved(writes, message.to, clock.now()))
            writes.send()


def enqueue_resolution(before: StandaloneTask, effects: Iterable[Effect]) -> None:
    """Enqueue the message to the tasks that depend on a resolved task. It is delivered after the commit."""
    if before.is_awaited and (resolutions := _resolutions(effects)):
        now = clock.now()
        ids = [dependencies.insert_resolved_message(before.id, {"reason": each.reason}, now) for each in resolutions]
        transaction.on_commit(partial(deliver_after_commit, tuple(ids)))


def _resolutions(effects: Iterable[Effect]) -> Sequence[PublishResolution]:
    return [effect for effect in effects if isinstance(effect, PublishResolution)]
