"""The runs of tasks of Django's tasks framework: start them, execute them and read their results."""

import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from inspect import iscoroutinefunction, signature
from time import monotonic
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.db.models.signals import post_migrate
from django.utils.module_loading import import_string

from ..core.decide import Report
from ..core.definition import Definition
from ..core.states import ATTEMPT, COMPLETED, LEASED, RUN
from ..db.database import transaction
from ..db.statements import is_in_transaction
from ..definitions.models import ResolvedDefinition
from ..definitions.resolved_definitions import resolve_requested
from ..runs.commands.start import StartRequest, start_run
from ..runs.models import Attempt, Run, TaskLog
from ..runs.queries.retention import time_of_id
from ..tasks.store import ClaimedAttempt
from ..utils import clock, process_state
from ..utils.process_state import Slot
from .api import AUTHOR, as_json, as_project, milliseconds
from .framework import (
    QUEUE_PREFIX,
    Task,
    TaskError,
    TaskOptions,
    TaskResult,
    TaskResultStatus,
    new_result,
    normalize_json,
    options_of,
    task_finished,
    task_started,
)
from .framework import TaskContext as FrameworkContext
from .reading import load_stored
from .tasks import TaskContext, TaskFailed, TaskPostponed, WorkerTask

STEP = "task"
INPUTS = ("function", "args", "kwargs", "backend", "queue_name", "run_after")
"""The input of the run, and of its step."""
EXCEPTION = "exception"
"""The path of the exception class in the output of a failed attempt. Its traceback is in the log of the task."""
MAX_REASON = 2_000
CHECK_SECONDS = 1.0
"""The time for which a stored definition is known to exist. `manage.py flush` may delete it."""
DefinitionKey = tuple[str, str, TaskOptions]
"""The path of a function, its queue and its options."""
_definitions: Slot[dict[DefinitionKey, tuple[Definition, float]]] = process_state.slot(dict)
"""Stored definitions, each with the monotonic time until which it need not be looked up."""
LOST, CANCELED = "builtins.TimeoutError", "asyncio.exceptions.CancelledError"


def start(result: TaskResult, options: TaskOptions) -> str:
    """Start the run of an enqueued task, and return its id."""
    task = result.task
    values = (
        task.module_path,
        result.args,
        result.kwargs,
        task.backend,
        task.queue_name,
        None if task.run_after is None else task.run_after.isoformat(),
    )
    request = StartRequest(
        task.module_path,
        input=as_json(dict(zip(INPUTS, values, strict=True)), "input"),
        priority=int(task.priority),
        definition=resolved_definition(task.module_path, task.queue_name, options),
        starts_at=milliseconds(task.run_after),
    )
    with as_project():
        return start_run(request, AUTHOR)


def resolved_definition(path: str, queue_name: str, options: TaskOptions) -> Definition:
    """Return the stored definition of the run of a task. This process stores each one once."""
    known, key = _definitions.value, (path, queue_name, options)
    found, checks_at = known.get(key, (None, 0.0))
    if found is not None and monotonic() < checks_at:
        return found
    if found is not None and ResolvedDefinition.objects.filter(pk=found.hash).exists():
        known[key] = found, monotonic() + CHECK_SECONDS
        return found
    found = resolve_requested(path, None, definition_of(*key), clock.now())
    # A rollback also removes the row.
    transaction.on_commit(partial(_remember, known, key, found))
    return found


def _remember(known: dict[DefinitionKey, tuple[Definition, float]], key: DefinitionKey, definition: Definition) -> None:
    # A test case calls the hooks within its transaction, which it rolls back.
    if not is_in_transaction():
        known[key] = definition, monotonic() + CHECK_SECONDS


def forget_definitions(**_: object) -> None:
    """Look up all definitions again, because a test or a command has emptied the tables."""
    _definitions.value.clear()


post_migrate.connect(forget_definitions)


def definition_of(path: str, queue_name: str, options: TaskOptions) -> dict[str, Any]:
    """Return the definition of the run of a task: one step with these options."""
    name = f"{QUEUE_PREFIX}{queue_name}"
    return {
        "name": path,
        "version": 1,
        "tasks": [
            {
                "name": name,
                "taskReferenceName": STEP,
                "inputParameters": {key: f"${{workflow.input.{key}}}" for key in INPUTS},
                "taskDefinition": {
                    "name": name,
                    # An attempt whose exception must not be repeated ends with a terminal error.
                    "retryCount": options.retries + options.restarts,
                    "retryLogic": "FIXED",
                    "retryDelaySeconds": options.retry_seconds,
                    "responseTimeoutSeconds": options.lease_seconds,
                    "timeoutSeconds": options.timeout_seconds,
                    "timeoutPolicy": "RETRY" if options.retries else "TIME_OUT_WF",
                },
            }
        ],
    }


def enqueued_at(run_id: str) -> datetime | None:
    """Return when a run was created. `Run.created_at` is later if its task has `run_after`."""
    return _moment(time_of_id(run_id))


def read_result(run_id: str) -> TaskResult | None:
    """Return the result of a task as it is now. Returns None if there is no such run of a task.

    Raises:
        ImportError: when the function is no longer in the project.
        SuspiciousOperation: when its path names something else.
    """
    row = Run.objects.filter(pk=run_id[:64]).first()
    if row is None:
        return None
    call = load_stored(row.input, row.input_path)
    if set(call) != set(INPUTS):
        return None
    result = new_result(find_task(call, row.priority), row.pk, call["args"], call["kwargs"])
    attempts = list(Attempt.objects.filter(run_id=row.pk).order_by("seq"))
    begun = [attempt for attempt in attempts if attempt.started_at is not None]
    values: dict[str, Any] = {
        "status": _status(row, attempts),
        "enqueued_at": enqueued_at(row.pk),
        "started_at": _moment(begun[0].started_at) if begun else None,
        "last_attempted_at": _moment(begun[-1].claimed_at or begun[-1].started_at) if begun else None,
        "finished_at": _moment(row.ended_at),
        "errors": _errors(attempts),
        "worker_ids": [attempt.worker for attempt in begun],
    }
    if row.status == COMPLETED:
        values["_return_value"] = load_stored(row.output, row.output_path).get("result")
    return _change(result, **values)


def _status(row: Run, attempts: list[Attempt]) -> TaskResultStatus:
    if row.status in RUN.final:
        return TaskResultStatus.SUCCESSFUL if row.status == COMPLETED else TaskResultStatus.FAILED
    is_running = bool(attempts) and attempts[-1].status == LEASED
    return TaskResultStatus.RUNNING if is_running else TaskResultStatus.READY


def _errors(attempts: list[Attempt]) -> list[TaskError]:
    """Return the errors of the attempts that have failed, in one statement if there are any."""
    failed = [each for each in attempts if each.status in ATTEMPT.final and each.status != COMPLETED]
    if not failed:
        return []
    lines = TaskLog.objects.filter(attempt_id__in=[each.pk for each in failed]).order_by("at", "id")
    # The traceback is the last line.
    tracebacks = dict(lines.values_list("attempt_id", "line"))
    errors = []
    for each in failed:
        path = (each.output or {}).get(EXCEPTION)
        text = tracebacks.get(each.pk, each.reason) if path else each.reason
        errors.append(_error(path or (CANCELED if each.status == "CANCELED" else LOST), text))
    return errors


def _error(path: str, text: str) -> TaskError:
    return TaskError(exception_class_path=path, traceback=text)


def find_task(call: dict[str, Any], priority: int) -> Task:
    """Return the task that a run was enqueued for, with its queue, its priority and its time.

    Raises:
        ImportError: when the function is not in the project.
        SuspiciousOperation: when the path names something that is not a task.
    """
    found = import_string(call["function"])
    if not isinstance(found, Task):
        raise SuspiciousOperation(f"{call['function']!r} is not a task.")
    run_after = None if call["run_after"] is None else datetime.fromisoformat(call["run_after"])
    changes = {"priority": priority, "backend": call["backend"], "queue_name": call["queue_name"]}
    return replace(found, run_after=run_after, **changes)


def find_queues(names: Iterable[str]) -> dict[str, WorkerTask]:
    """Return what executes the tasks of these queues."""
    return {name: TaskQueue(name, _nothing) for name in names}


def _nothing() -> None:
    """Stand for the function of a queue that has many."""


@dataclass(frozen=True)
class TaskQueue(WorkerTask):
    """A queue of the framework: each of its tasks names its function."""

    def for_attempt(self, attempt: ClaimedAttempt) -> WorkerTask:
        """Return the function of a claimed task. If it is not in the project, the task fails with that error."""
        call, is_atomic, is_async = attempt.input, False, False
        with suppress(Exception):
            task = find_task(call, attempt.run.priority)
            is_atomic, is_async = options_of(task).atomic, iscoroutinefunction(task.func)
        started = TaskCall(attempt, call)
        function = started.acall if is_async else started.call
        return WorkerTask(
            self.name, function, is_atomic, parameters=signature(function).parameters, on_end=started.finish
        )


@dataclass
class TaskCall:
    """One attempt at a task, from its claim until its report."""

    attempt: ClaimedAttempt
    input: dict[str, Any]
    result: TaskResult | None = None
    error: BaseException | None = None
    value: Any = None

    def call(self, context: TaskContext) -> dict[str, Any]:
        """Call the function of the task, and return the output of the attempt."""
        with self._catching(context):
            result = self._begin()
            self.value = normalize_json(result.task.call(*_context(result), *result.args, **result.kwargs))
        return {"result": self.value}

    async def acall(self, context: TaskContext) -> dict[str, Any]:
        """Call the asynchronous function of the task, and return the output of the attempt."""
        with self._catching(context):
            result = self._begin()
            self.value = normalize_json(await result.task.acall(*_context(result), *result.args, **result.kwargs))
        return {"result": self.value}

    def _begin(self) -> TaskResult:
        attempt = self.attempt
        if attempt.number:
            # The result has the errors of the attempts before this one.
            result = read_result(attempt.run_id)
            assert result is not None
        else:
            task, started_at = find_task(self.input, attempt.run.priority), _moment(attempt.started_at)
            result = _change(
                new_result(task, attempt.run_id, self.input["args"], self.input["kwargs"]),
                status=TaskResultStatus.RUNNING,
                enqueued_at=enqueued_at(attempt.run_id),
                started_at=started_at,
                last_attempted_at=started_at,
                worker_ids=[attempt.worker],
            )
        self.result = result
        task_started.send(type(result.task.get_backend()), task_result=result)
        return result

    @contextmanager
    def _catching(self, context: TaskContext) -> Iterator[None]:
        """Fail the attempt with the exception of the function, with a terminal error after the last retry."""
        try:
            yield
        except TaskPostponed:
            raise
        except BaseException as error:
            if context.is_canceled:
                raise
            self.error = error
            # An older version of the project may lack the function.
            retries = self.result is None or context.attempt <= options_of(self.result.task).retries
            if isinstance(error, TaskFailed):
                retries = retries and error.retries
            reason = f"{type(error).__name__}: {error}"[:MAX_REASON]
            raise TaskFailed(reason, retries=retries, output={EXCEPTION: _class_path(error)}) from error

    def finish(self, report: Report) -> None:
        """Announce the end of the task, after its report is stored."""
        result = self.result
        if result is None or report.outcome not in (COMPLETED, "FAILED_FOR_GOOD"):
            return
        _change(result, finished_at=_moment(clock.now()))
        if self.error is None:
            _change(result, status=TaskResultStatus.SUCCESSFUL, _return_value=self.value)
            self._send_finished(result)
            return
        error = _error(_class_path(self.error), "".join(traceback.format_exception(self.error)))
        _change(result, status=TaskResultStatus.FAILED, errors=[*result.errors, error])
        try:
            raise self.error
        except BaseException:
            # The framework's own receiver logs the exception that is being handled.
            self._send_finished(result)

    @staticmethod
    def _send_finished(result: TaskResult) -> None:
        task_finished.send(type(result.task.get_backend()), task_result=result)


def _class_path(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def _context(result: TaskResult) -> list[FrameworkContext]:
    """Return the first argument of a function that takes the context."""
    return [FrameworkContext(task_result=result)] if result.task.takes_context else []


def _change(result: TaskResult, **values: Any) -> TaskResult:
    """Change fields of a result, which is frozen for the code of the project, and return it."""
    for name, value in values.items():
        object.__setattr__(result, name, value)
    return result


def _moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
