"""Execute the functions of a Django project: claim their tasks, extend the leases, and report the results.

One thread waits for a task while the others execute theirs. The report of a task claims the next one in the same
transaction. A task that ends without its function, such as one of a terminated workflow, is noticed within a
second; the result of its function is discarded.

Timers, built-in tasks and periodic jobs, for which a server has Celery, run in one of the worker processes. Each of
them is ready to take over.
"""

import asyncio
import logging
import os
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from socket import gethostname
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connections, reset_queries
from django.utils.module_loading import autodiscover_modules

from .. import notifications
from ..core.decide import EVENTS_OF_OUTCOMES, Report
from ..core.effects import CreateTask, Effect
from ..core.errors import Invalid, RequestRefused
from ..core.states import ATTEMPT
from ..db.database import alias, transaction
from ..db.transient_errors import describe_transient, discard_broken_connection, is_transient
from ..notifications import LOCAL_CALLER, Waiter
from ..processes import background
from ..processes.background import PERIODIC_JOBS
from ..processes.sweep_loop import CHECK_SECONDS, SweepWatchdog, watch_once
from ..processes.sweeps import sweep_until
from ..runs.models import Attempt
from ..system_tasks.cancellation import CANCELLATIONS, Cancellation
from ..system_tasks.network_guard import require_network_guards
from ..tasks import store
from ..tasks.commands.claims import NextClaim, claim_now, releasing_undelivered
from ..tasks.commands.pollers import record_poll
from ..tasks.commands.reports import ReportOptions, release_claimed, renew_lease, report_task
from ..tasks.secrets import redact_work, secrets_for_worker
from ..tasks.store import ClaimedAttempt
from ..telemetry.log_context import log_context
from ..utils import clock, fault_points
from .api import as_json
from .tasks import TaskContext, TaskFailed, TaskPostponed, WorkerTask, find_tasks

log = logging.getLogger(__name__)
WAIT_SECONDS = 1.0
"""The time after which the queues are looked up again: the longest delay by a lost notification."""
RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 30.0
"""The first and the longest pause before a repetition, while the database does not respond."""
RENEWALS = 3
"""The number of times that a lease is extended within its duration."""
MOST_IN_A_ROW = 16
"""The number of tasks after which a thread looks at all its queues in turn."""
MAX_REASON = 2_000
PERIODIC = ("measure", "alerts", "prune")
"""The jobs that run at their intervals. The others start when they have something to do."""
FIRST_SECONDS = 30.0
"""The time after which a process that sweeps runs the periodic jobs for the first time."""


class NotCompleted(Exception):
    """The report of an atomic function was not accepted, so its transaction is rolled back."""


@dataclass(frozen=True, slots=True)
class Result:
    """The report of a function, and lines for the log of its task."""

    report: Report
    logs: Sequence[tuple[str, int]] = ()


class _Held(NamedTuple):
    attempt: ClaimedAttempt
    cancellation: Cancellation
    renews_at: float


class LeaseKeeper:
    """Extends the leases of the tasks that this process executes, in a thread of its own."""

    def __init__(self, worker: str) -> None:
        self._worker, self._lock, self._changed = worker, Lock(), Event()
        self._held: dict[str, _Held] = {}
        self._thread: Thread | None = None

    @contextmanager
    def keeping(self, attempt: ClaimedAttempt, cancellation: Cancellation) -> Iterator[None]:
        """Extend the lease of an attempt during the block. The work is canceled if the attempt has ended."""
        if not attempt.lease_ms:
            yield
            return
        with self._lock:
            self._held[attempt.id] = _Held(attempt, cancellation, monotonic() + _renewal_seconds(attempt))
            if self._thread is None:
                self._thread = Thread(target=self._renew_forever, name="extends leases", daemon=True)
                self._thread.start()
        self._changed.set()
        try:
            yield
        finally:
            with self._lock:
                del self._held[attempt.id]

    def _renew_forever(self) -> None:
        while True:
            with self._lock:
                next_at = min((held.renews_at for held in self._held.values()), default=None)
            self._changed.wait(None if next_at is None else max(next_at - monotonic(), 0))
            self._changed.clear()
            self.renew_due(monotonic())

    def renew_due(self, moment: float) -> None:
        """Extend the leases that are due at a monotonic time."""
        with self._lock:
            due = [held for held in self._held.values() if held.renews_at <= moment]
        for held in due:
            attempt, is_ours = held.attempt, True
            try:
                is_ours = renew_lease(attempt.run_id, attempt.id, self._worker, worker=self._worker)
            except RequestRefused:
                is_ours = False
            except Exception as error:
                # The next try may succeed before the lease ends.
                log.warning("lease_not_extended", extra={"attempt_id": attempt.id, "why": type(error).__name__})
                discard_broken_connection()
            if not is_ours:
                held.cancellation.cancel()
            with self._lock:
                if self._held.get(attempt.id) is held:
                    self._held[attempt.id] = held._replace(renews_at=moment + _renewal_seconds(attempt))


def _renewal_seconds(attempt: ClaimedAttempt) -> float:
    return attempt.lease_ms / 1000 / RENEWALS


class WorkerProcess:
    """The threads of this process that execute tasks. `tasks`: the functions by the queues that they serve."""

    def __init__(self, tasks: Mapping[str, WorkerTask], threads: int) -> None:
        self.name = f"{gethostname()}:{os.getpid()}"
        self.stopping = Event()
        self._tasks, self._queues = tasks, list(tasks)
        self._claim_lock, self._leases = Lock(), LeaseKeeper(self.name)
        self._running: dict[str, ClaimedAttempt] = {}
        self._threads = [Thread(target=self._work, name=f"task {number}", daemon=True) for number in range(threads)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, grace_seconds: float) -> int:
        """Claim nothing more, and wait for the tasks that are executed. The others are returned to their queues.

        Returns the number of those.
        """
        self.stopping.set()
        notifications.wake_all_and_close()
        ends_at = monotonic() + grace_seconds
        for thread in self._threads:
            thread.join(max(ends_at - monotonic(), 0))
        return self.release_unfinished()

    def release_unfinished(self) -> int:
        """Return the tasks that are still executed to their queues, for other processes. Returns their number."""
        unfinished = list(self._running.values())
        for attempt in unfinished:
            try:
                release_claimed(attempt, self.name)
            except Exception:
                # Its lease ends.
                log.exception("task_not_released", extra={"attempt_id": attempt.id})
        return len(unfinished)

    def run_until_idle(self) -> int:
        """Execute tasks in this thread until no queue has a task that is due. Returns their number."""
        count = 0
        while (attempt := self._claim()[0]) is not None:
            count += self._execute_in_a_row(attempt)
        return count

    def _work(self) -> None:
        try:
            while not self.stopping.is_set():
                try:
                    if (attempt := self._wait_for_task()) is not None:
                        self._execute_in_a_row(attempt)
                except Exception:
                    # The lease of a task that was claimed ends.
                    log.exception("thread_interrupted")
                    discard_broken_connection()
                    self.stopping.wait(RETRY_SECONDS)
        finally:
            connections.close_all()

    def _execute_in_a_row(self, attempt: ClaimedAttempt) -> int:
        """Execute a task, and those that are claimed with the report of the one before. Return their number.

        The next one is from the queue of the next step, or from the one that the row began with.
        """
        first = attempt.queue, attempt.domain

        def choose(effects: Sequence[Effect]) -> tuple[str, str]:
            created = (each.task.attempt for each in effects if isinstance(each, CreateTask))
            return next(((each.queue, each.domain) for each in created if each.queue in self._tasks), first)

        for count in range(1, MOST_IN_A_ROW):
            claim = NextClaim(attempt.id, self.name, lambda *_: not self.stopping.is_set(), LOCAL_CALLER, choose)
            self.execute(attempt, claim)
            if not claim.taken:
                return count
            attempt = claim.taken[0]
            if self.stopping.is_set():
                release_claimed(attempt, self.name)
                return count
        self.execute(attempt)
        return MOST_IN_A_ROW

    def _wait_for_task(self) -> ClaimedAttempt | None:
        """Wait until a task can be claimed, and claim it. Returns None when the process is about to stop."""
        with self._claim_lock, ExitStack() as stack:
            attempt, seconds = self._try_to_claim()
            if attempt is not None or self.stopping.is_set():
                return attempt
            waiters = {queue: stack.enter_context(notifications.subscribe(queue)) for queue in self._tasks}
            while not self.stopping.is_set():
                attempt, seconds = self._try_to_claim()
                for queue, waiter in waiters.items():
                    if waiter.expected:
                        waiter.finish_claim(attempt is not None and attempt.queue == queue)
                if attempt is not None:
                    return attempt
                _wait_for_any(waiters.values(), seconds)
        return None

    def _try_to_claim(self) -> tuple[ClaimedAttempt | None, float]:
        if self.stopping.is_set():
            return None, 0
        try:
            return self._claim()
        except Exception as error:
            why = describe_transient(error) if is_transient(error) else type(error).__name__
            log.warning("tasks_not_claimed", extra={"why": why})
            discard_broken_connection()
            return None, RETRY_SECONDS

    def _claim(self) -> tuple[ClaimedAttempt | None, float]:
        """Claim a task. Returns it, or None, with the seconds until the queues must be looked up again."""
        now, visible_at = clock.now(), store.find_next_visible(set(self._queues))
        for queue in list(self._queues):
            task = self._tasks[queue]
            record_poll(task.name, task.domain, self.name)
            if visible_at.get(queue, now + 1) > now:
                continue
            if claimed := claim_now(queue, self.name, 1):
                # The next claim begins with the other queues.
                self._queues.remove(queue)
                self._queues.append(queue)
                return claimed[0], 0
        later = [at for at in visible_at.values() if at > now]
        return None, min([WAIT_SECONDS, *((at - now) / 1000 for at in later)])

    def execute(self, attempt: ClaimedAttempt, claim: NextClaim | None = None) -> None:
        """Execute a claimed task, and report its result. `claim`: claims the next task with the report.

        If its input cannot be completed at the moment, the task is returned to its queue.
        """
        task = self._tasks[attempt.queue].for_attempt(attempt)
        try:
            with releasing_undelivered([attempt.id], self.name):
                inputs = secrets_for_worker(attempt).input or attempt.input
        except Exception as error:
            why = describe_transient(error) if is_transient(error) else type(error).__name__
            log.warning("task_returned", extra={"attempt_id": attempt.id, "why": why})
            return
        with (
            log_context(task.name, run_id=attempt.run_id, task_id=attempt.task_id, attempt_id=attempt.id),
            CANCELLATIONS.value.watching(attempt) as cancellation,
            self._leases.keeping(attempt, cancellation) if not _blocks_writers(task) else _no_lease(),
        ):
            self._running[attempt.id] = attempt
            try:
                result = self._perform(task, attempt, inputs or {}, cancellation, claim)
                if result is not None and not cancellation.is_canceled:
                    self._report(task, attempt, result, claim)
            finally:
                self._running.pop(attempt.id, None)
        if settings.DEBUG:
            reset_queries()

    def _perform(
        self,
        task: WorkerTask,
        attempt: ClaimedAttempt,
        inputs: Mapping[str, Any],
        cancellation: Cancellation,
        claim: NextClaim | None,
    ) -> Result | None:
        """Call the function. Returns what to report, or None if its report is stored, or must not be."""
        context = TaskContext(
            run_id=attempt.run_id,
            workflow=attempt.run.name,
            step=str(attempt.task),
            attempt_id=attempt.id,
            attempt=attempt.number + 1,
            input=inputs,
        )
        try:
            with cancellation.stopping_by(partial(setattr, context, "is_canceled", True)):
                if task.atomic:
                    return self._perform_atomically(task, attempt, context, claim)
                return Result(_report_value(_call(task, context, cancellation)))
        except TaskFailed as failed:
            logs = [] if failed.__cause__ is None else [_traceback_line(failed.__cause__)]
            return Result(Report("FAILED" if failed.retries else "FAILED_FOR_GOOD", failed.output, failed.reason), logs)
        except TaskPostponed as postponed:
            seconds = max(postponed.seconds, 0)
            return Result(
                Report("IN_PROGRESS", {}, postponed.reason, callback_seconds=seconds, merges=True, is_kept=False)
            )
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            discard_broken_connection()
            if cancellation.is_canceled:
                return None
            log.warning("task_failed", exc_info=True)
            reason = f"{type(error).__name__}: {error}"[:MAX_REASON]
            return Result(Report("FAILED", {}, reason), [_traceback_line(error)])

    def _perform_atomically(
        self, task: WorkerTask, attempt: ClaimedAttempt, context: TaskContext, claim: NextClaim | None
    ) -> Result | None:
        """Call the function and store its report in one transaction.

        Returns what to report in another transaction, because the engine did not accept the result, or None.
        """
        report: Report | None = None
        try:
            with transaction.atomic(durable=True) if claim is None else claim.within_transaction():
                report = _report_value(task.function(**task.arguments(context)))
                if transaction.get_rollback():
                    raise TaskFailed("The function has set its transaction to be rolled back.", retries=True)
                fault_points.reach("work-performed")
                is_accepted = self._store(attempt, Result(report), claim)
                if not is_accepted or not Attempt.objects.filter(pk=attempt.id, status="COMPLETED").exists():
                    raise NotCompleted
        except NotCompleted:
            is_open = Attempt.objects.filter(pk=attempt.id).exclude(status__in=ATTEMPT.final).exists()
            # Its output is too large, or violates a schema: the report fails the task.
            return Result(report) if is_open and report is not None else None
        _announce_end(task, report)
        return None

    def _report(self, task: WorkerTask, attempt: ClaimedAttempt, result: Result, claim: NextClaim | None) -> None:
        """Store a result. While the database does not respond, it is tried again until the process stops."""
        seconds = RETRY_SECONDS
        while True:
            try:
                if self._store(attempt, result, claim if result.report.outcome in EVENTS_OF_OUTCOMES else None):
                    _announce_end(task, result.report)
                return
            except RequestRefused as refused:
                log.warning("result_refused", extra={"attempt_id": attempt.id, "why": refused.message})
                return
            except Exception as error:
                discard_broken_connection()
                if not is_transient(error):
                    log.exception("result_not_stored", extra={"attempt_id": attempt.id})
                    return
                log.warning("result_kept", extra={"attempt_id": attempt.id, "why": describe_transient(error)})
                if self.stopping.wait(seconds):
                    return
                seconds = min(seconds * 2, MAX_RETRY_SECONDS)

    def _store(self, attempt: ClaimedAttempt, result: Result, claim: NextClaim | None = None) -> bool:
        report = replace(result.report, worker=self.name, lease=attempt.scheduled_at)
        if report.outcome != "COMPLETED":
            # Values of masked fields have no names in a message.
            report = replace(report, reason=redact_work(attempt, report.reason))
        options = ReportOptions(logs=result.logs, final_query=claim.final_query if claim else None)
        store_report = partial(report_task, attempt.run_id, attempt.id, report, self.name, options)
        return store_report() if claim is None else claim.report(store_report)


def project_tasks(named: Collection[str] = ()) -> dict[str, WorkerTask]:
    """Return the functions of the project and the queues of Django's tasks framework, by the queues that they serve.

    `named`: queues of the framework that its backends do not list.
    """
    autodiscover_modules("tasks")
    tasks = find_tasks()
    if getattr(settings, "TASKS", None) and (find_spec("django.tasks") or find_spec("django_tasks")):
        from .task_runs import find_queues
        from .tasks_backend import served_queues

        tasks |= find_queues(served_queues(named))
    return tasks


def run_due_tasks() -> int:
    """Execute the tasks that are due, and those that become due meanwhile, in this thread. Return their number."""
    return WorkerProcess(project_tasks(), threads=0).run_until_idle()


def _wait_for_any(waiters: Collection[Waiter], seconds: float) -> None:
    """Wait for a notification of one of the waiters, at most this time."""
    notified = Event()
    for waiter in waiters:
        if not waiter.begin_wait(notified.set):
            notified.set()
    notified.wait(seconds)
    for waiter in waiters:
        waiter.end_wait()


@contextmanager
def _no_lease() -> Iterator[None]:
    yield


def _blocks_writers(task: WorkerTask) -> bool:
    """Return True if no other transaction can write, nor end the lease, while the function is executed."""
    return task.atomic and connections[alias()].vendor == "sqlite"


def _announce_end(task: WorkerTask, report: Report) -> None:
    """Call the function for the end of an attempt, whose errors change nothing."""
    if task.on_end is not None:
        try:
            task.on_end(report)
        except Exception:
            log.exception("end_not_announced")
            discard_broken_connection()


def _traceback_line(error: BaseException) -> tuple[str, int]:
    """Return the traceback of an exception as a line for the log of its task."""
    return "".join(traceback.format_exception(error)), clock.now()


def _call(task: WorkerTask, context: TaskContext, cancellation: Cancellation) -> Any:
    arguments = task.arguments(context)
    if not task.is_async:
        return task.function(**arguments)

    async def call() -> Any:
        loop, own = asyncio.get_running_loop(), asyncio.current_task()
        assert own is not None
        with cancellation.stopping_by(partial(loop.call_soon_threadsafe, own.cancel)):
            return await task.function(**arguments)

    return asyncio.run(call())


def _report_value(value: Any) -> Report:
    """Return the report of a function's value.

    Raises:
        TaskFailed: when the value is not JSON.
    """
    output = value if isinstance(value, Mapping) else {} if value is None else {"result": value}
    try:
        return Report("COMPLETED", as_json(output, "output"))
    except Invalid as refused:
        raise TaskFailed(refused.message) from refused


class PeriodicJobs:
    """When each periodic job is due in this process, which is the one that sweeps."""

    def __init__(self, moment: float) -> None:
        self._due_at = dict.fromkeys(PERIODIC, moment + FIRST_SECONDS)

    def take_due(self, moment: float) -> list[str]:
        """Return the jobs that are due at a monotonic time, and plan their next runs."""
        due = [name for name, at in self._due_at.items() if at <= moment]
        self._due_at |= {name: moment + PERIODIC_JOBS[name].every_seconds for name in due}
        return due


def start_background(stopping: Event) -> Thread:
    """Start the thread that sweeps unless another process does, until `stopping`.

    Raises:
        GuardIneffective: when built-in workers could reach addresses that are not allowed.
    """
    require_network_guards()
    thread = Thread(target=_watch, args=(stopping,), name="sweeps", daemon=True)
    thread.start()
    return thread


def _watch(stopping: Event) -> None:
    """Sweep while this process is the one that does, and start the jobs that are due after each sweep.

    When it stops, built-in workers claim nothing more, and return the tasks that they cannot finish.
    """
    watchdog, periodic = SweepWatchdog(sweep_until, is_regular=True), PeriodicJobs(monotonic())

    def start_jobs() -> None:
        background.start_due_jobs()
        for name in periodic.take_due(monotonic()):
            Thread(target=background.run_job, args=(name,), name=name, daemon=True).start()

    while not stopping.wait(CHECK_SECONDS):
        watch_once(watchdog, after_sweep=start_jobs)
    background.stopping.set()
    background.release_before_exit()
