"""The interface of built-in workers, the registry of those that the server executes, and their execution.

A worker is declared by its class with a `type`, in a module of `conductor_app/system_tasks`, or for models in one of
the modules that `ai/wiring.py` names. The server claims tasks, executes them, and reports the results, without the
network. Each queue of an isolation group has its own threads, which tasks of other queues cannot block.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from socket import gethostname
from threading import Event, Lock, Thread
from time import sleep
from types import ModuleType
from typing import Any, Literal, NamedTuple

from django.db import connections

from .. import notifications
from ..core.decide import Report
from ..core.definition import types_where
from ..core.step_types.base import type_of_queue
from ..core.trace_context import HEADER
from ..db.transient_errors import describe_transient, discard_broken_connection, is_transient
from ..events.sinks.base import SinkUnavailable
from ..settings import conf
from ..tasks.commands.claims import claim_tasks
from ..tasks.commands.pollers import release_connection
from ..tasks.commands.reports import release_claimed, report_task
from ..tasks.secrets import redact_work, secrets_for_worker
from ..tasks.store import ClaimedAttempt
from ..telemetry.log_context import log_context
from ..utils import clock, fault_points, process_state
from ..utils.process_state import Slot, Wiring
from .cancellation import CANCELLATIONS, Cancellation

Status = Literal["COMPLETED", "FAILED", "FAILED_WITH_TERMINAL_ERROR", "IN_PROGRESS"]
log = logging.getLogger(__name__)
WORKER_ID = f"built-in@{gethostname()}"
MAX_DELAY_SECONDS = 60
"""The maximum delay of an attempt that met a fault of this server, and between two reports of a kept result."""
REPORT_STATUSES = {"FAILED_WITH_TERMINAL_ERROR": "FAILED_FOR_GOOD"}
WAIT_MS = 20_000
"""The time that one claim waits for work, in milliseconds."""
RETRY_SECONDS = 1.0
FINISHING_SECONDS = 2.0
"""The time in which a stopped process can finish its tasks, in seconds."""


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


_running_attempts: Slot[dict[str, ClaimedAttempt]] = process_state.slot(dict)
"""The attempts that the threads of this process execute."""
_kept_results: Slot[dict[str, "KeptResult"]] = process_state.slot(dict)
"""Results that could not be stored, by attempt. Each call of `run_built_in_workers` reports those that are due."""


class KeptResult(NamedTuple):
    """A result that could not be stored. `due_at`: the time of the next try."""

    attempt: ClaimedAttempt
    outcome: WorkResult
    tries: int
    due_at: int


def run_built_in_workers(is_stopping: Callable[[], bool] = lambda: False, queues: Iterable[str] | None = None) -> int:
    """Execute tasks of built-in workers until these queues, or all, are empty. Returns the number of executed tasks.

    A queue that cannot be served, because the database does not respond, does not stop the others.
    """
    count, failures = 0, dict[str, str]()
    report_kept_results()
    for queue in workers() if queues is None else queues:
        try:
            while not is_stopping() and (claimed := claim_one(queue)):
                for attempt in claimed:
                    run_attempt(attempt)
                    count += 1
        except Exception as error:
            if not is_transient(error):
                raise
            failures[queue] = describe_transient(error)
            discard_broken_connection()
    if failures:
        log.warning("queues_not_served", extra={"queues": failures})
    return count


def claim_one(queue: str, wait_ms: int = 0) -> list[ClaimedAttempt]:
    """Claim one task of a built-in worker's queue, or none."""
    return claim_tasks(queue, worker=WORKER_ID, wait_ms=wait_ms)


def run_attempt(attempt: ClaimedAttempt) -> bool:
    """Execute an attempt and report its result. Returns False if the attempt had ended already.

    The work is stopped when the attempt ends meanwhile.
    """
    facts = {"run_id": attempt.run_id, "task_id": attempt.task_id, "attempt_id": attempt.id}
    caller = {HEADER: attempt.traceparent} if attempt.traceparent else None
    with (
        log_context(_type_of(attempt), caller=caller, **facts),
        CANCELLATIONS.value.watching(attempt) as cancellation,
    ):
        _running_attempts.value[attempt.id] = attempt
        try:
            return _run_and_report(attempt, cancellation)
        finally:
            _running_attempts.value.pop(attempt.id, None)


def report_kept_results(within_seconds: int = 0) -> None:
    """Report the results that could not be stored, if their next try is due within this time."""
    due_before = clock.now() + within_seconds * 1000
    for id in [id for id, kept in list(_kept_results.value.items()) if kept.due_at <= due_before]:
        # Another thread may report this one.
        if kept := _kept_results.value.pop(id, None):
            _report(kept.attempt, kept.outcome, kept.tries)


def release_unfinished() -> int:
    """Release the unfinished attempts of this process before it ends. Returns their number.

    If a thread still completes its attempt, the report is accepted unless another worker reports first. Other results
    are dropped. Results that could not be stored are reported once more.
    """
    report_kept_results(within_seconds=MAX_DELAY_SECONDS)
    released_count = 0
    for attempt in list(_running_attempts.value.values()):
        try:
            released_count += release_claimed(attempt, WORKER_ID)
            _running_attempts.value.pop(attempt.id, None)
        except Exception:
            # This attempt is released when its lease expires. The others can still be released now.
            log.exception("attempt_not_released", extra={"run_id": attempt.run_id, "attempt_id": attempt.id})
    return released_count


def _run_and_report(attempt: ClaimedAttempt, cancellation: Cancellation) -> bool:
    outcome = _perform(attempt, cancellation)
    if outcome is None or cancellation.is_canceled:
        return False
    fault_points.reach("work-performed")
    if attempt.id not in _running_attempts.value and outcome.status != "COMPLETED":
        # The attempt was released in the meantime, so its failure may be due to the end of this process.
        return False
    return _report(attempt, outcome)


def _report(attempt: ClaimedAttempt, outcome: WorkResult, tries: int = 0) -> bool:
    """Report the result of an attempt. A result that cannot be stored stays in memory and is reported later.

    Returns False if the attempt had ended already, or the result stays in memory.
    """
    try:
        is_accepted = _store_result(attempt, outcome)
    except Exception as error:
        if not is_transient(error):
            raise
        discard_broken_connection()
        if not tries:
            # Most of these errors are over at once, such as that of a connection that was lost long before.
            return _report(attempt, outcome, tries=1)
        extra = {"run_id": attempt.run_id, "attempt_id": attempt.id, "why": describe_transient(error)}
        log.warning("result_kept", extra=extra)
        due_at = clock.now() + _delay_seconds(tries) * 1000
        _kept_results.value[attempt.id] = KeptResult(attempt, outcome, tries + 1, due_at)
        return False
    if is_accepted:
        _finish(attempt, outcome)
    return is_accepted


def _store_result(attempt: ClaimedAttempt, outcome: WorkResult) -> bool:
    # Outputs are masked by name. Error messages have no names, so masked values are redacted in them.
    redacted = partial(redact_work, attempt, with_masked=outcome.status.startswith("FAILED"))
    report = Report(
        REPORT_STATUSES.get(outcome.status, outcome.status),
        redacted(outcome.output),
        redacted(outcome.reason),
        outcome.callback_seconds,
        WORKER_ID,
        merges=outcome.is_interrupted,
        is_kept=not outcome.callback_seconds,
        lease=attempt.scheduled_at,
    )
    return report_task(attempt.run_id, attempt.id, report, WORKER_ID)


def _finish(attempt: ClaimedAttempt, outcome: WorkResult) -> None:
    """Let the worker delete what it has stored for an attempt. If that fails, a job deletes it later."""
    if (kind := workers().get(_type_of(attempt))) and not outcome.is_interrupted:
        try:
            kind.finish(attempt, outcome)
        except Exception as error:
            if not is_transient(error):
                raise
            log.warning("remains_not_deleted", extra={"attempt_id": attempt.id, "why": describe_transient(error)})
            discard_broken_connection()


def _type_of(attempt: ClaimedAttempt) -> str:
    """Return the type that executes an attempt: that of the queue from which the worker has claimed it."""
    return type_of_queue(attempt.queue)


def _perform(attempt: ClaimedAttempt, cancellation: Cancellation) -> WorkResult | None:
    kind = _type_of(attempt)
    try:
        return workers()[kind].work_on(attempt)
    except Exception as error:
        if cancellation.is_canceled:
            # The work was stopped in its midst.
            discard_broken_connection()
            return None
        if is_transient(error):
            return _interruption(attempt, error)
        # The attempt fails and can be retried, instead of being blocked until its lease expires.
        log.exception("built_in_worker_failed", extra={"attempt_id": attempt.id})
        return WorkResult("FAILED", {}, f"The built-in {kind} worker failed: {type(error).__name__}.")


def _interruption(attempt: ClaimedAttempt, error: Exception) -> WorkResult:
    """Return the result of an attempt that met a fault of this server: it waits in its queue, with a growing delay."""
    discard_broken_connection()
    seconds = _delay_seconds(attempt.poll_count - 1)
    why = str(error) if isinstance(error, SinkUnavailable) else describe_transient(error)
    log.warning("built_in_worker_interrupted", extra={"attempt_id": attempt.id, "why": why})
    reason = f"{why} The task was put back and is tried again after {seconds} s."
    return WorkResult("IN_PROGRESS", {}, reason, seconds, is_interrupted=True)


def _delay_seconds(tries: int) -> int:
    return min(2 ** max(min(tries, 10), 0), MAX_DELAY_SECONDS)


def queues_of_groups(groups: Iterable[str]) -> list[str]:
    """Return the queues of these groups, each of which is written as `group`, `@space` or `@space-group`."""
    endings = [group if group.startswith("@") else f"-{group}" for group in groups]
    return [f"{task_type}{ending}" for ending in endings for task_type in sorted(types_where("is_isolated"))]


class QueueServer:
    """The threads that serve one queue. One thread waits for a claim while the others execute tasks."""

    def __init__(self, queue: str, stopping: Event, threads: int) -> None:
        self.queue, self._stopping, self._claim_lock = queue, stopping, Lock()
        self.threads = [Thread(target=self._serve, name=f"serves {queue}", daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                report_kept_results()
                with self._claim_lock:
                    claimed = [] if self._stopping.is_set() else claim_one(self.queue, WAIT_MS)
                for attempt in claimed:
                    run_attempt(attempt)
            except Exception as error:
                # Mostly the database is unreachable. The thread tries again.
                why = describe_transient(error) if is_transient(error) else type(error).__name__
                log.warning("queue_not_served", extra={"queue": self.queue, "why": why})
                discard_broken_connection()
                self._stopping.wait(RETRY_SECONDS)
            release_connection()
        connections.close_all()


def serve_groups(stopping: Event) -> None:
    """Execute the tasks of the configured groups until `stopping`; then release unfinished tasks."""
    for queue in queues_of_groups(conf.isolation_groups):
        QueueServer(queue, stopping, conf.isolation_threads)
    stopping.wait()
    notifications.wake_all_and_close()
    sleep(FINISHING_SECONDS)
    release_unfinished()
