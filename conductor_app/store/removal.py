"""Delete runs, standalone tasks and expired rows with everything that belongs to them."""

from collections.abc import Collection

from ..models import Attempt, CachedResult, Dependency, ModelCall, PulseMessage, Run, Task, TaskLog
from . import outbox_messages


def delete_run(run_id: str) -> None:
    """Delete a run with its tasks, attempts, logs, calls of models and messages. The caller has locked it."""
    TaskLog.objects.filter(attempt_id__in=Attempt.objects.filter(run_id=run_id).values("id")).delete()
    ModelCall.objects.filter(run_id=run_id).delete()
    outbox_messages.delete_messages_to(run_id)
    Run.objects.filter(pk=run_id).delete()


def delete_standalone_task(task_id: str) -> None:
    """Delete a standalone task with its attempts, dependencies and messages. The caller has locked it."""
    Dependency.objects.filter(task_id=task_id).delete()
    PulseMessage.objects.filter(task_id=task_id).delete()
    outbox_messages.delete_messages_to(task_id)
    Task.objects.filter(pk=task_id, standalone__isnull=False).delete()


def delete_group_messages(group_ids: Collection[str]) -> None:
    """Delete the Pulse messages about groups themselves."""
    PulseMessage.objects.filter(group_id__in=group_ids, task_id="").delete()


def delete_expired_results(now: int) -> None:
    """Delete the cached results whose lifetime is over."""
    CachedResult.objects.filter(expires_at__lte=now).delete()
