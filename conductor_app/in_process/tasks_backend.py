"""The backend of Django's tasks framework: a task is a run with one step, which `conductor_worker` executes.

The framework creates backends when the modules of a project are imported, so this module imports the engine only when a
task is enqueued or read.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from inspect import iscoroutinefunction
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from django.utils.crypto import get_random_string

from .framework import (
    DEFAULT_TASK_QUEUE_NAME,
    OPTION_NAMES,
    QUEUE_PREFIX,
    BaseTaskBackend,
    ConductorTask,
    InvalidTask,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    new_result,
    options_of,
    read_options,
    task_backends,
    task_enqueued,
)

FARTHEST = timedelta(days=366)
"""The latest `run_after`."""


class ConductorBackend(BaseTaskBackend):  # type: ignore[misc]
    """Enqueues tasks in the caller's transaction: a task is executed if and only if that commits."""

    task_class = ConductorTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

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
        try:
            is_atomic = options_of(task).atomic
        except ValueError as error:
            raise InvalidTask(str(error)) from None
        if is_atomic and iscoroutinefunction(task.func):
            raise InvalidTask("An atomic task must not be asynchronous.")

    def enqueue(self, task: Task, args: Iterable[Any], kwargs: Mapping[str, Any]) -> TaskResult:
        """Enqueue a task in the caller's transaction, and return its result, which is READY."""
        from . import task_runs

        self.validate_task(task)
        # It refuses arguments that JSON has no form for.
        result = new_result(task, get_random_string(32), args, kwargs)
        object.__setattr__(result, "id", task_runs.start(result, options_of(task)))
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


def served_queues(named: Collection[str] = ()) -> set[str]:
    """Return the queues of the backends of this class in the project, as the names of the engine's queues.

    `named`: queues that a backend without a list of queues accepts: it accepts any name.
    """
    names: set[str] = set()
    for alias in getattr(settings, "TASKS", {}):
        try:
            backend = task_backends[alias]
        except ImproperlyConfigured:
            # Another backend is wrong. Its use is an error that names it.
            continue
        if isinstance(backend, ConductorBackend):
            names |= {f"{QUEUE_PREFIX}{name}" for name in backend.queues or {DEFAULT_TASK_QUEUE_NAME}}
            if not backend.queues:
                names |= {name for name in named if name.startswith(QUEUE_PREFIX)}
    return names


def _aware(moment: datetime) -> datetime:
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment
