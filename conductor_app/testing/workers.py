"""Workers of the Python SDK, in threads of the test's process."""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from types import ModuleType
from typing import Any, TypeAlias

from .server_host import TestKitError

POLL_INTERVAL_MS = 20
"""The longest pause between two polls of a worker whose queue is empty."""
WORKER_ID = "test"
STOP_SECONDS = 10

try:
    from conductor.client.automator import task_handler
    from conductor.client.automator.async_task_runner import AsyncTaskRunner
    from conductor.client.automator.task_runner import TaskRunner
    from conductor.client.configuration.configuration import Configuration
    from conductor.client.worker.worker import Worker
    from conductor.client.worker.worker_interface import WorkerInterface
except ImportError as error:
    raise TestKitError(
        'Workers in tests need the Python SDK. Install it: pip install "conductor-app[test-kit]"'
    ) from error

Source: TypeAlias = WorkerInterface | Callable[..., Any] | ModuleType


def find_workers(sources: Sequence[Source], functions: Mapping[str, Callable[..., Any]]) -> list[WorkerInterface]:
    """Return the workers of SDK objects, decorated functions and modules, and of functions by the names of their tasks.

    A function by name replaces a worker of that task.

    Raises:
        TestKitError: when a function or module has no worker.
    """
    found = [worker for source in sources for worker in _workers_of(source)]
    found = [worker for worker in found if worker.get_task_definition_name() not in functions]
    return [*found, *(_worker_of(name, function) for name, function in functions.items())]


def _workers_of(source: Source) -> list[WorkerInterface]:
    if isinstance(source, WorkerInterface):
        return [source]
    registered = task_handler._decorated_functions.items()
    if isinstance(source, ModuleType):
        matching = [(key, record) for key, record in registered if record["func"].__module__ == source.__name__]
        hint = f"The module {source.__name__} has no function with the decorator @worker_task."
    elif callable(source):
        function = inspect.unwrap(source)
        matching = [(key, record) for key, record in registered if record["func"] is function]
        name = getattr(source, "__name__", repr(source))
        hint = (
            f"{name} has no decorator @worker_task. Add it, or name the task that it does: "
            f"server.work(**{{'task name': {name}}})"
        )
    else:
        matching, hint = [], f"{source!r} is neither a worker of the Python SDK, nor a function, nor a module."
    if not matching:
        raise TestKitError(hint)
    return [_registered_worker(name, domain, record) for (name, domain), record in matching]


def _registered_worker(name: str, domain: str | None, record: Mapping[str, Any]) -> WorkerInterface:
    return _worker_of(
        name,
        record["func"],
        domain=domain,
        thread_count=record.get("thread_count", 1),
        register_task_def=record.get("register_task_def", False),
        lease_extend_enabled=record.get("lease_extend_enabled", False),
        task_def_template=record.get("task_def"),
        overwrite_task_def=record.get("overwrite_task_def", True),
        strict_schema=record.get("strict_schema", False),
        register_schema=bool(record.get("register_schema")),
    )


def _worker_of(name: str, function: Callable[..., Any], **options: Any) -> WorkerInterface:
    return Worker(
        task_definition_name=name,
        execute_function=function,
        poll_interval=POLL_INTERVAL_MS,
        worker_id=WORKER_ID,
        **options,
    )


class WorkerThreads:
    """Workers that poll a server until they are stopped."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._running: list[tuple[WorkerInterface, Any, Thread]] = []

    def start(self, workers: Sequence[WorkerInterface]) -> None:
        """Start workers, each with the runner of the SDK and in a thread."""
        for worker in workers:
            is_async = inspect.iscoroutinefunction(getattr(worker, "execute_function", None))
            runner = (AsyncTaskRunner if is_async else TaskRunner)(worker, self._configuration)
            thread = Thread(
                target=_run, args=(runner,), daemon=True, name=f"worker {worker.get_task_definition_name()}"
            )
            self._running.append((worker, runner, thread))
            thread.start()

    def tell_to_stop(self) -> None:
        """Let the workers end with their current polls and tasks."""
        for _worker, runner, _thread in self._running:
            runner._shutdown = True

    def join(self) -> list[str]:
        """Wait until the workers have ended. Returns the names of the tasks of those that have not."""
        left = []
        for worker, _runner, thread in self._running:
            thread.join(STOP_SECONDS)
            if thread.is_alive():
                left.append(worker.get_task_definition_name())
        self._running.clear()
        return left

    def served_tasks(self) -> list[tuple[str, str]]:
        """Return the task types that the workers poll, each with its domain."""
        return [
            (name, worker.get_domain() or "")
            for worker, _runner, _thread in self._running
            for name in worker.task_definition_names
        ]

    def ids(self) -> list[str]:
        """Return the ids under which the workers hold tasks."""
        return sorted({worker.get_identity() for worker, _runner, _thread in self._running})


def _run(runner: Any) -> None:
    if isinstance(runner, AsyncTaskRunner):
        asyncio.run(runner.run())
    else:
        runner.run()
