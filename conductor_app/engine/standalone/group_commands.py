"""Commands on all tasks of a group. A few tasks are changed within the request, many by messages."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from ... import clock
from ...core.errors import Conflict, NotFound
from ...core.standalone import commands
from ...core.standalone.decide import Command
from ...core.standalone.effects import Effect
from ...core.standalone.snapshot import StandaloneTask as Core
from ...insight.standalone.task_status import NAMES_OF_PRIORITIES
from ...models import Message, StandaloneTask, TaskGroup
from .. import audit
from . import bulk_actions, standalone_rows
from .change import change_task
from .task_actions import PRIORITIZE
from .task_groups import publish_group_message

WAITED_FOR = 50
"""The maximum number of tasks that are changed within the request, which takes about 0.2 seconds."""


def cancel_group(id: str, by: str) -> list[str]:
    """Cancel the open tasks of a sealed group. Returns their ids.

    Raises:
        NotFound: when there is no such group.
        Conflict: when the group is not sealed.
    """
    if standalone_rows.find_group(id).sealed_at is None:
        raise Conflict(f"Task group {id} is not sealed. Seal it first.")
    now = clock.now()
    is_open = StandaloneTask.objects.filter(group_id=id, deadline_at__gte=now, task__status__in=("BLOCKED", "ACTIVE"))
    return _apply_to_all(id, is_open, commands.cancel_if_open, "cancel", by)


def prioritize_group(id: str, priority: int, by: str) -> tuple[TaskGroup, list[str]]:
    """Change the priority of the tasks of a group that were never resolved. Returns the group and their ids.

    Raises:
        NotFound: when there is no such group.
    """
    group, now = standalone_rows.find_group(id), clock.now()
    unresolved = StandaloneTask.objects.filter(group_id=id, ever_resolved=False, deadline_at__gte=now).exclude(
        priority=priority
    )
    ids = _apply_to_all(id, unresolved, commands.prioritize(priority), PRIORITIZE, by, priority)
    facts: dict[str, Any] = {"taskGroupId": group.id, "schedulerId": group.scheduler_id}
    facts |= {"newPriority": NAMES_OF_PRIORITIES[priority], "tasksAffected": len(ids)}
    with transaction.atomic():
        publish_group_message(group, "task-group-priority-changed", clock.now(), **facts)
    return group, ids


def _apply_to_all(
    id: str, tasks: QuerySet[StandaloneTask], command: Command, verb: str, by: str, priority: int = 0
) -> list[str]:
    """Apply a command to each task in its own transaction. Returns the sorted ids of the changed tasks."""
    # In the order in which workers would claim them.
    ids = list(tasks.order_by("task__status", "-priority", "task__created_at", "pk").values_list("pk", flat=True))
    if len(ids) > WAITED_FOR:
        requested = _already_requested(id, verb, priority)
        ids = [each for each in ids if each not in requested]
        bulk_actions.enqueue_bulk_action(id, ids, verb, by, priority=priority)
    else:
        ids = [each for each in ids if _try_apply(each, command, verb, by)]
        if ids:
            bulk_actions.record_bulk_action(id, ids, verb, by, priority=priority)
    return sorted(ids)


def _try_apply(task_id: str, command: Command, verb: str, by: str) -> bool:
    """Return True if the command changed the task, which may have been resolved or deleted since it was read."""
    effects: Sequence[Effect] = ()

    def recording(standalone: Core, now: int) -> Iterable[Effect]:
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
    own = StandaloneTask.objects.filter(group_id=group_id).values("pk")
    found = Message.objects.filter(subject=bulk_actions.BULK_ACTION_SUBJECT, to__in=own).values_list("to", "facts")
    return {id for id, facts in found if (facts["verb"], facts["priority"]) == (verb, priority)}
