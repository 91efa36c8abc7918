"""The interface of built-in workers, and the registry of those that the server executes.

A worker is declared by its class with a `type`, in a module of `conductor_app/system_tasks`, or for models in one of
the modules that `ai/wiring.py` names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Literal, NamedTuple

from ..core.trace_context import HEADER
from ..tasks.secrets import secrets_for_worker
from ..tasks.store import ClaimedAttempt
from ..utils import process_state
from ..utils.process_state import Wiring

Status = Literal["COMPLETED", "FAILED", "FAILED_WITH_TERMINAL_ERROR", "IN_PROGRESS"]


@dataclass(frozen=True)
class WorkResult:
    """The result of an attempt, as a remote worker would report it.

    `callback_seconds`: if in progress, seconds until the attempt can be claimed again, or 0 if a client will report on
    it. `is_interrupted`: a fault of this server prevented the work, so the output of the attempt stays as it is.
    """

    status: Status
    output: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    callback_seconds: int = 0
    is_interrupted: bool = False


def with_trace(request: dict[str, Any], attempt: ClaimedAttempt) -> dict[str, Any]:
    """Return a request with the trace of the run among its `headers`, unless they have one or are invalid."""
    headers = request.get("headers")
    if not attempt.traceparent or not isinstance(headers, dict | None):
        return request
    if any(str(name).lower() == HEADER for name in headers or {}):
        return request
    return {**request, "headers": {**(headers or {}), HEADER: attempt.traceparent}}


class BuiltInWorker:
    """Executes the tasks of one type. Most workers use only their input, never the database."""

    type: str

    def work_on(self, attempt: ClaimedAttempt) -> WorkResult | None:
        """Execute a claimed attempt and return its result, or None if it was put back into its queue."""
        return self.perform_again(self.inputs_of(attempt), attempt.poll_count)

    def finish(self, attempt: ClaimedAttempt, result: WorkResult) -> None:
        """Delete what the worker has stored for the attempt, whose result is accepted."""

    def inputs_of(self, attempt: ClaimedAttempt) -> dict[str, Any]:
        """Return the input of an attempt, with the secrets resolved where the author of the step wrote them."""
        return secrets_for_worker(attempt).input or attempt.input

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Execute the work and return its result. An invalid input is a failed result, not an exception."""
        raise NotImplementedError

    def perform_again(self, inputs: dict[str, Any], polls: int) -> WorkResult:
        """Execute the work of an attempt at its `polls`th claim, counted from one."""
        return self.perform(inputs)


class _Registration(NamedTuple):
    types: tuple[str, ...]
    load: Callable[[], Iterable[BuiltInWorker]]
    is_slow: bool


_registrations: Wiring[tuple[_Registration, ...]] = process_state.wiring(())


def workers_in(modules: Iterable[ModuleType]) -> Iterator[BuiltInWorker]:
    """Yield a worker of each class with a `type` that one of these modules defines."""
    for module in modules:
        for defined in vars(module).values():
            is_worker = isinstance(defined, type) and issubclass(defined, BuiltInWorker) and "type" in vars(defined)
            if is_worker and defined.__module__ == module.__name__:
                yield defined()


def load_system_workers() -> Iterator[BuiltInWorker]:
    """Yield the workers of all modules of this package, which are imported at the first use of one."""
    package = __package__ or ""
    names = (found.name for found in iter_modules([str(Path(__file__).parent)]))
    yield from workers_in(import_module(f"{package}.{name}") for name in names)


def register_workers(
    types: Iterable[str], load: Callable[[], Iterable[BuiltInWorker]], *, are_slow: bool = False
) -> None:
    """Let built-in workers execute the tasks of these types.

    `load`: returns the workers. It is called when a process first needs one, so that it can import lazily.
    `are_slow`: a task takes minutes, so the workers have threads of their own.
    """
    _registrations.value = (*_registrations.value, _Registration(tuple(types), load, are_slow))
    workers.cache_clear()


@cache
def workers() -> Mapping[str, BuiltInWorker]:
    return {worker.type: worker for registration in _registrations.value for worker in registration.load()}


def fast_queues() -> tuple[str, ...]:
    """Return the queues of the workers whose tasks end within seconds."""
    return tuple(
        type for registration in _registrations.value if not registration.is_slow for type in registration.types
    )


def slow_queues() -> tuple[str, ...]:
    """Return the queues of the workers that have threads of their own."""
    return tuple(type for registration in _registrations.value if registration.is_slow for type in registration.types)
