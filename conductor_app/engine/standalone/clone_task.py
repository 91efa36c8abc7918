"""Command that clones a standalone task: the same work under a new id."""

from typing import Any

from django.db import transaction

from ... import clock, randomness
from ...core.errors import NotFound
from ...core.ids import slug_id
from ...insight.standalone.task_status import format_timestamp
from ...models import Dependency, StandaloneTask, TaskGroup
from .. import audit
from . import task_commands


def clone_task(task_id: str, by: str, reason: str = "") -> str:
    """Clone a task into its group, or into a new group if that is sealed or named after the task. Returns the new id.

    Raises:
        NotFound: when there is no such task.
    """
    old = StandaloneTask.objects.select_related("task").filter(pk=task_id).first()
    if old is None:
        raise NotFound(f"Task {task_id} does not exist.")
    with transaction.atomic():
        new = _copy_of(old, slug_id(randomness.random_hex() + randomness.random_hex()), clock.now())
        task_commands.create_task(new)
        audit.record("task", new.id, "create", by, reason=reason, facts={"like": task_id})
    return new.id


def _copy_of(old: StandaloneTask, id: str, now: int) -> task_commands.NewTask:
    """Return the new task. Its periods have the same lengths; dependencies that do not exist any more are dropped."""
    deadline_at, expires_at = (now + at - old.task.created_at for at in (old.deadline_at, old.expires_at))
    group_id, requires = _target_group(old, id), _open_requirements(old, deadline_at)
    moments = {
        "created": format_timestamp(now),
        "deadline": format_timestamp(deadline_at),
        "expires": format_timestamp(expires_at),
    }
    definition: dict[str, Any] = {**old.definition, **moments, "taskGroupId": group_id, "dependencies": requires}
    return task_commands.NewTask(
        id=id,
        group_id=group_id,
        scheduler_id=old.scheduler_id,
        project_id=old.project_id,
        queue=old.queue,
        priority=old.priority,
        retries=old.retries,
        deadline_at=deadline_at,
        expires_at=expires_at,
        requires=requires,
        accepts_failure=old.accepts_failure,
        tags=old.tags,
        routes=old.routes,
        name=old.task.name,
        definition=definition,
    )


def _target_group(old: StandaloneTask, id: str) -> str:
    is_open = TaskGroup.objects.filter(pk=old.group_id, sealed_at=None).exists()
    return old.group_id if is_open and old.group_id != old.pk else id


def _open_requirements(old: StandaloneTask, deadline_at: int) -> list[str]:
    needed = Dependency.objects.filter(task_id=old.pk).exclude(required_id=old.pk).values("required_id")
    there = StandaloneTask.objects.filter(pk__in=needed, expires_at__gte=deadline_at)
    return list(there.order_by("pk").values_list("pk", flat=True))
