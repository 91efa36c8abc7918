"""Deletion of expired standalone tasks, task groups, queues and workers."""

from django.db import transaction

from ... import clock, conf
from ...models import (
    Failure,
    GroupWatch,
    PendingApproval,
    Queue,
    StandaloneTask,
    TaskGroup,
    Worker,
)
from ...store import removal, standalone_tasks


def delete_expired_tasks(limit: int) -> int:
    """Delete up to `limit` tasks whose retention after expiry is over. Returns how many.

    If there are fewer, expired groups, workers and queues are deleted too.
    """
    before = clock.now() - conf.taskcluster_expiration_delay * 1000
    ids = list(
        StandaloneTask.objects.filter(expires_at__lt=before).order_by("expires_at").values_list("pk", flat=True)[:limit]
    )
    for id in ids:
        delete_task(id)
    if len(ids) < limit:
        # A group outlives its tasks: it is deleted when none of them is left.
        _delete_empty_groups(list(TaskGroup.objects.filter(expires_at__lt=before).values_list("pk", flat=True)[:limit]))
        Worker.objects.filter(expires_at__lt=before, quarantine_until__lt=before).delete()
        Queue.objects.filter(expires_at__lt=before).delete()
    return len(ids)


def delete_task(task_id: str) -> None:
    """Delete a task with its attempts, dependencies and messages."""
    with transaction.atomic():
        # Concurrent changes finish before the lock is granted, so that they leave no orphaned rows.
        standalone_tasks.lock_row(task_id)
        Failure.objects.filter(task_id=task_id).exclude(task_id="").delete()
        removal.delete_standalone_task(task_id)


def _delete_empty_groups(ids: list[str]) -> None:
    with transaction.atomic():
        removal.delete_group_messages(ids)
        GroupWatch.objects.filter(group_id__in=ids).delete()
        PendingApproval.objects.filter(group_id__in=ids).delete()
        TaskGroup.objects.filter(pk__in=ids).delete()
