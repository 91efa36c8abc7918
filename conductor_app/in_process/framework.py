"""Names of Django's tasks framework, wherever it is installed, and the options of the tasks that this app executes.

The framework is `django.tasks` of Django 6, or the package django-tasks on older versions. A project creates tasks when
its modules are imported, so this module imports nothing of the engine.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import django

from .tasks import DEFAULT_LEASE_SECONDS, DEFAULT_RETRY_SECONDS, require_durations

if TYPE_CHECKING or django.VERSION >= (6, 0):
    from django.tasks import task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import DEFAULT_TASK_QUEUE_NAME, Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json
else:
    from django_tasks import exceptions, task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import DEFAULT_TASK_QUEUE_NAME, Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json

    # Versions after 0.12 have the name that Django has.
    InvalidTask = getattr(exceptions, "InvalidTask", None) or exceptions.InvalidTaskError

__all__ = [
    "DEFAULT_TASK_QUEUE_NAME",
    "BaseTaskBackend",
    "InvalidTask",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultStatus",
    "normalize_json",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]

QUEUE_PREFIX = "django_tasks."
"""Before the name of a queue of the framework: together they are the queue of the engine."""
DEFAULT_RESTARTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """How the engine executes a task. Durations are in seconds; 0 is off.

    `atomic`: the function and its result are one transaction. `retries`: after exceptions. `restarts`: further attempts
    for those whose process ended. `lease_seconds`: the time after which that is noticed. `timeout_seconds`: of one
    attempt.
    """

    atomic: bool = False
    retries: int = 0
    retry_seconds: int = DEFAULT_RETRY_SECONDS
    restarts: int = DEFAULT_RESTARTS
    lease_seconds: int = DEFAULT_LEASE_SECONDS
    timeout_seconds: int = 0


OPTION_NAMES = tuple(field.name for field in fields(TaskOptions))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConductorTask(Task):  # type: ignore[misc]
    """A task with options of its own, such as `@task(retries=5)`. Those of the backend are the default."""

    atomic: bool | None = None
    retries: int | None = None
    retry_seconds: int | None = None
    restarts: int | None = None
    lease_seconds: int | None = None
    timeout_seconds: int | None = None


def options_of(task: Task) -> TaskOptions:
    """Return the options of a task: its own, and otherwise those of its backend.

    Raises:
        ValueError: when an option is invalid.
    """
    own = {name: getattr(task, name, None) for name in OPTION_NAMES}
    given = {name: value for name, value in own.items() if value is not None}
    return read_options({**task.get_backend().options, **given}, task.name)


def read_options(values: Mapping[str, Any], name: str) -> TaskOptions:
    """Return options from a dictionary.

    Raises:
        ValueError: when a value is invalid.
    """
    options = TaskOptions(**{key: value for key, value in values.items() if key in OPTION_NAMES})
    if not isinstance(options.atomic, bool):
        raise ValueError(f"`atomic` of the task {name} must be True or False (got {options.atomic!r}).")
    require_durations(
        name,
        retries=options.retries,
        retry_seconds=options.retry_seconds,
        restarts=options.restarts,
        lease_seconds=options.lease_seconds,
        timeout_seconds=options.timeout_seconds,
    )
    return options


def new_result(task: Task, id: str, args: Iterable[Any], kwargs: Mapping[str, Any]) -> TaskResult:
    """Return the result of a task that was just enqueued."""
    return TaskResult(
        task=task,
        id=id,
        status=TaskResultStatus.READY,
        enqueued_at=None,
        started_at=None,
        last_attempted_at=None,
        finished_at=None,
        args=list(args),
        kwargs=dict(kwargs),
        backend=task.backend,
        errors=[],
        worker_ids=[],
    )
