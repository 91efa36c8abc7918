"""Commands on task groups: seal, cancel, and change the priority of all tasks.

A few tasks are changed within the request, many by one message each.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from django.db.models import QuerySet

from ...access import audit
from ...core.errors import Conflict, NotFound
from ...db.database import transaction
from ...runs.commands.messages import deliver_after_commit
from ...runs.models import Message
from ...runs.store import outbox
from ...settings import conf
from ...utils import clock
from .. import store
from ..core import decisions
from ..core.decisions import Command
from ..core.snapshot import Effect, StandaloneTask
from ..models import StandaloneTask as StandaloneTaskRow
from ..models import TaskGroup
from ..queries import NAMES_OF_PRIORITIES
from .rows import find_group, publish_group_message
from .tasks import PRIORITIZE, apply_action, change_task

BULK_ACTION_SUBJECT = "asked"
"""The subject of the messages that apply an action to a task."""
AT_ONCE, EVERY_MS = 50, 10
"""The first AT_ONCE tasks are handled at once, the others one per EVERY_MS, so that other messages are not delayed."""


def enqueue_bulk_action(group_id: str, task_ids: Sequence[str], verb: str, by: str, priority: int = 0) -> None:
    """Enqueue an action for tasks, in this order. The first AT_ONCE are handled after the commit."""
    now, facts = clock.now(), {"verb": verb, "by": by, "reason": "", "priority": priority}
    messages = [
        Message(
            to=id,
            subject=BULK_ACTION_SUBJECT,
            facts=facts,
            sent_at=now,
            due_at=now + max(place - AT_ONCE, 0) * EVERY_MS,
        )
        for place, id in enumerate(task_ids)
    ]
    with transaction.atomic():
        sent = outbox.send_all(messages)
        record_bulk_action(group_id, task_ids, verb, by, priority)
        transaction.on_commit(partial(deliver_after_commit, tuple(message.pk for message in sent[:AT_ONCE])))


def record_bulk_action(group_id: str, task_ids: Sequence[str], verb: str, by: str, priority: int = 0) -> None:
    """Write an audit entry for an action on many tasks of a group."""
    facts = {"tasks": len(task_ids), **({"priority": NAMES_OF_PRIORITIES[priority]} if priority else {})}
    audit.record("task_group", group_id, verb, by, facts=facts)


def handle_bulk_action(message: Message) -> None:
    """Apply the action of a message to its task, once.

    Raises:
        NotFound: when the task was deleted.
        Conflict: when the state of the task does not allow the action any more.
    """
    facts = message.facts
    with transaction.atomic():
        # Lock the task before its message, in the same order as the deletion of a task.
        store.lock_row(message.to)
        if outbox.consume(message.pk):
            apply_action(
                facts["verb"], message.to, facts["by"], facts["reason"], facts["priority"], asked_at=message.sent_at
            )


def seal_group(group_id: str, by: str, reason: str = "") -> TaskGroup:
    """Seal a group: it accepts no more tasks. A repeated seal keeps the first time."""
    with transaction.atomic():
        now = clock.now()
        TaskGroup.objects.filter(pk=group_id, sealed_at=None).update(sealed_at=now)
        group = find_group(group_id)
        publish_group_message(group, "task-group-sealed", now)
        audit.record("task_group", group_id, "seal", by, reason=reason)
    return group


WAITED_FOR = 50
"""The maximum number of tasks that are changed within the request, which takes about 0.2 seconds."""


def cancel_group(id: str, by: str) -> list[str]:
    """Cancel the open tasks of a sealed group. Returns their ids.

    Raises:
        Conflict: when the group is not sealed.
    """
    if find_group(id).sealed_at is None:
        raise Conflict(f"Task group {id} is not sealed. Seal it first.")
    now = clock.now()
    is_open = StandaloneTaskRow.objects.filter(
        group_id=id, deadline_at__gte=now, task__status__in=("BLOCKED", "ACTIVE")
    )
    return _apply_to_all(id, is_open, decisions.cancel_if_open, "cancel", by)


def cancel_group_as_operator(id: str, by: str) -> list[str]:
    """Cancel the open tasks of a sealed group, on the request of a person. Returns their ids.

    Raises:
        Conflict: when the group is not sealed, or has so many open tasks that people need an approval.
    """
    count = StandaloneTaskRow.objects.filter(group_id=id, task__status__in=("BLOCKED", "ACTIVE")).count()
    if 0 < conf.bulk_approval_from <= count:
        raise Conflict(f"People may cancel fewer than {conf.bulk_approval_from} tasks at once, and {count} are open.")
    return cancel_group(id, by)


def prioritize_group(id: str, priority: int, by: str) -> tuple[TaskGroup, list[str]]:
    """Change the priority of the tasks of a group that were never resolved. Returns the group and their ids."""
    group, now = find_group(id), clock.now()
    unresolved = StandaloneTaskRow.objects.filter(group_id=id, ever_resolved=False, deadline_at__gte=now).exclude(
        priority=priority
    )
    ids = _apply_to_all(id, unresolved, decisions.prioritize(priority), PRIORITIZE, by, priority)
    facts: dict[str, Any] = {"taskGroupId": group.id, "schedulerId": group.scheduler_id}
    facts |= {"newPriority": NAMES_OF_PRIORITIES[priority], "tasksAffected": len(ids)}
    with transaction.atomic():
        publish_group_message(group, "task-group-priority-changed", clock.now(), **facts)
    return group, ids


def _apply_to_all(
    id: str, tasks: QuerySet[StandaloneTaskRow], command: Command, verb: str, by: str, priority: int = 0
) -> list[str]:
    """Apply a command to each task in its own transaction. Returns the sorted ids of the changed tasks."""
    # In the order in which workers would claim them.
    ids = list(tasks.order_by("task__status", "-priority", "task__created_at", "pk").values_list("pk", flat=True))
    if len(ids) > WAITED_FOR:
        requested = _already_requested(id, verb, priority)
        ids = [each for each in ids if each not in requested]
        enqueue_bulk_action(id, ids, verb, by, priority)
    else:
        ids = [each for each in ids if _try_apply(each, command, verb, by)]
        if ids:
            record_bulk_action(id, ids, verb, by, priority)
    return sorted(ids)


def _try_apply(task_id: str, command: Command, verb: str, by: str) -> bool:
    """Return True if the command changed the task, which may have been resolved or deleted since it was read."""
    effects: Sequence[Effect] = ()

    def recording(standalone: StandaloneTask, now: int) -> Iterable[Effect]:
        nonlocal effects
        effects = tuple(command(standalone, now))
        return effects

    with suppress(Conflict, NotFound), transaction.atomic():
        change_task(task_id, recording)
        if effects:
            audit.record("task", task_id, verb, by)
    return bool(effects)


def _already_requested(group_id: str, verb: str, priority: int) -> set[str]:
    """Return the tasks that have an undelivered message with the same action."""
    own = StandaloneTaskRow.objects.filter(group_id=group_id).values("pk")
    found = Message.objects.filter(subject=BULK_ACTION_SUBJECT, to__in=own).values_list("to", "facts")
    return {id for id, facts in found if (facts["verb"], facts["priority"]) == (verb, priority)}
