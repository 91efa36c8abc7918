"""A backend of Django's tasks framework: each enqueued task is a run with one step, which `conductor_worker` executes.

It serves `django.tasks` of Django 6 and the package django-tasks on older versions. The framework creates backends when
the modules of a project are imported, so this module imports the engine only when a task is enqueued or read.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

import django
from django.conf import settings
from django.core import checks
from django.utils import timezone
from django.utils.crypto import get_random_string

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
    "ConductorBackend",
    "ConductorTask",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultStatus",
    "normalize_json",
    "task_finished",
    "task_started",
]

QUEUE_PREFIX = "django_tasks."
"""Before the name of a queue of the framework: together they are the queue of the engine."""
STEP = "task"
FARTHEST = timedelta(days=366)
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


class ConductorBackend(BaseTaskBackend):  # type: ignore[misc]
    """Enqueues tasks in the caller's transaction: a task is executed if and only if that commits."""

    task_class = ConductorTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def options_of(self, task: Task) -> TaskOptions:
        """Return the options of a task.

        Raises:
            InvalidTask: when an option is invalid.
        """
        own = {name: getattr(task, name, None) for name in OPTION_NAMES}
        given = {name: value for name, value in own.items() if value is not None}
        try:
            return read_options({**self.options, **given}, task.name)
        except ValueError as error:
            raise InvalidTask(str(error)) from None

    def validate_task(self, task: Task) -> None:
        """Check that the backend can execute a task.

        Raises:
            InvalidTask: when it cannot.
        """
        super().validate_task(task)
        if len(task.module_path) > 255:
            raise InvalidTask("The path of a task's function must have at most 255 characters.")
        if task.run_after is not None and _aware(task.run_after) > timezone.now() + FARTHEST:
            raise InvalidTask(f"run_after must be at most {FARTHEST.days} days ahead.")
        if self.options_of(task).atomic and iscoroutinefunction(task.func):
            raise InvalidTask("An atomic task must not be asynchronous.")

    def enqueue(self, task: Task, args: Iterable[Any], kwargs: Mapping[str, Any]) -> TaskResult:
        """Enqueue a task in the caller's transaction, and return its result, which is READY."""
        from . import task_runs

        self.validate_task(task)
        # It refuses arguments that JSON has no form for.
        result = new_result(task, get_random_string(32), args, kwargs)
        object.__setattr__(result, "id", task_runs.start(result, self.options_of(task)))
        object.__setattr__(result, "enqueued_at", task_runs.enqueued_at(result.id))
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """Return the result of a task, by the id of its run.

        Raises:
            TaskResultDoesNotExist: when there is no such run, or it is not one of an enqueued task.
        """
        from . import task_runs

        found = task_runs.read_result(str(result_id))
        if found is None:
            raise TaskResultDoesNotExist(result_id)
        return found

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        """Report settings of the backend that are invalid."""
        from django.apps import apps

        found: list[tuple[str, str | None]] = []
        if not apps.is_installed("conductor_app"):
            found.append(("requires 'conductor_app' in INSTALLED_APPS.", None))
        if unknown := sorted(set(self.options) - set(OPTION_NAMES)):
            hint = f"The options are: {', '.join(OPTION_NAMES)}."
            found.append((f"has unknown OPTIONS: {', '.join(unknown)}.", hint))
        try:
            read_options(self.options, self.alias)
        except ValueError as error:
            found.append((f"has an invalid option: {error}", None))
        return [checks.Error(f"TASKS[{self.alias!r}] {text}", hint, id="conductor.E006") for text, hint in found]


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


def served_queues(named: Collection[str] = ()) -> set[str]:
    """Return the queues of the backends of this class in the project, as the names of the engine's queues.

    `named`: queues that a backend without a list of queues accepts: it accepts any name.
    """
    names: set[str] = set()
    for alias in getattr(settings, "TASKS", {}):
        backend = task_backends[alias]
        if isinstance(backend, ConductorBackend):
            names |= {f"{QUEUE_PREFIX}{name}" for name in backend.queues or {DEFAULT_TASK_QUEUE_NAME}}
            if not backend.queues:
                names |= {name for name in named if name.startswith(QUEUE_PREFIX)}
    return names


def _aware(moment: datetime) -> datetime:
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment
