"""Celery jobs. A job may run at any time and any number of times, because the state is in the database."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import BoundedSemaphore, Event, Thread
from time import monotonic, sleep
from typing import Any

from celery.signals import task_postrun, task_prerun, worker_init, worker_ready, worker_shutting_down
from django.conf import settings
from django.db import connections

from conductor_app.celery import app
from conductor_app.db.transient_errors import describe_transient, discard_broken_connection, is_transient
from conductor_app.processes.periodic_jobs import SWEEP_SECONDS
from conductor_app.processes.sweep_loop import TICK_SECONDS, start_watchdog, sweep_until_time
from conductor_app.processes.sweeps import SWEEP_BATCH, due_jobs
from conductor_app.settings import conf
from conductor_app.system_tasks.registry import fast_queues, slow_queues
from conductor_app.telemetry import log_context, metrics
from conductor_app.utils import clock
from conductor_app.utils.background import Sweep, registered_work

log = logging.getLogger(__name__)

THREADS_RESERVED_FOR_SWEEPS = 3
OVERLAP_SECONDS = 0.5
"""The time for which a call of `sweep` continues after the next one is due, which then waits."""
MAX_PRUNE_PASSES = 100
"""The maximum number of passes per call."""
MAX_BULK_MS = 5_000
"""The maximum duration of one call on bulk operations, in milliseconds."""
FINISHING_SECONDS = 2.0
"""The time in which a stopped worker process can finish its tasks, in seconds. `serve` kills it after four."""

_sweeping = BoundedSemaphore(1)
_working = BoundedSemaphore(max(1, settings.CELERY_WORKER_CONCURRENCY - THREADS_RESERVED_FOR_SWEEPS))
_calling_models = BoundedSemaphore(conf.ai_task_threads)
_publishing = BoundedSemaphore(1)
_exporting = BoundedSemaphore(1)
_working_in_bulk = BoundedSemaphore(1)
_stopping = Event()


@app.task(name="conductor_app.background.jobs.sweep")
def sweep(seconds: float = SWEEP_SECONDS + OVERLAP_SECONDS) -> None:
    """Handle due rows until the next call. One call runs at a time per process."""
    ends_at = monotonic() + seconds
    # The next call blocks on the semaphore while this one still waits for due rows, so that sweeps run without a gap.
    with _acquire(_sweeping, seconds=seconds) as is_mine:
        if is_mine:
            sweep_until_time(ends_at, _stopping, start_due_jobs)


def start_due_jobs() -> None:
    """Start the jobs that have something to do in threads of this process, without the broker."""
    for name in due_jobs(fast_queues(), slow_queues()):
        Thread(target=_run_job, args=(name,), name=name).start()


def _run_job(name: str) -> None:
    try:
        {"work": work, "bulk": bulk, "call_models": execute_ai_tasks, "export": export}[name]()
    except Exception:
        log.exception("job_failed", extra={"job": name})
    finally:
        connections.close_all()


@app.task(name="conductor_app.background.jobs.work")
def work() -> None:
    """Execute the tasks of built-in workers until their queues are empty, and publish outbox messages.

    Some threads are reserved for sweeps. Publishing to a slow system blocks at most one thread.
    """
    from conductor_app.events.workers.publisher import publish_due_events
    from conductor_app.system_tasks.runner import run_built_in_workers

    with _acquire(_working) as is_mine:
        if is_mine:
            _run_each(partial(run_built_in_workers, _stopping.is_set, fast_queues()))
    with _acquire(_publishing) as is_mine:
        if is_mine:
            publishers = [publish_due_events, *(publish for work in registered_work() for publish in work.publish)]
            _run_each(*(partial(publish, _stopping.is_set) for publish in publishers))
    if any(work.export for work in registered_work()):
        Thread(target=_run_job, args=("export",), name="export", daemon=True).start()


def export() -> None:
    """Send what other systems only observe, such as traces, unless a thread of this process does so already."""
    with _acquire(_exporting) as is_mine:
        if is_mine:
            exports = [export for work in registered_work() for export in work.export]
            _run_each(*(partial(export, _stopping.is_set) for export in exports))


@app.task(name="conductor_app.background.jobs.call_models")
def call_models() -> None:
    """Start a thread that executes AI tasks, because a call of a model takes minutes and Celery has few threads."""
    Thread(target=_run_job, args=("call_models",), name="call_models", daemon=True).start()


def execute_ai_tasks() -> None:
    """Execute AI tasks until their queues are empty, unless the maximum number of threads does so already."""
    from conductor_app.system_tasks.runner import run_built_in_workers

    with _acquire(_calling_models) as is_mine:
        # The end of one task may put the next one of its run into a queue that was empty before.
        while is_mine and run_built_in_workers(_stopping.is_set, slow_queues()):
            pass


@app.task(name="conductor_app.background.jobs.bulk")
def bulk() -> None:
    """Continue bulk operations, separately from sweeps, so that no lease waits for them."""
    from conductor_app.bulk.executor import run_operations_until
    from conductor_app.processes.sweeps import run_and_record_sweep

    def continue_operations(_: int) -> int:
        until, tick = clock.now() + MAX_BULK_MS, round(TICK_SECONDS * 1000)
        return run_operations_until(until, tick, _stopping.is_set)

    with _acquire(_working_in_bulk) as is_mine:
        if is_mine:
            run_and_record_sweep("work_bulk", continue_operations)


@app.task(name="conductor_app.background.jobs.measure")
def measure() -> None:
    """Measure typical durations of definitions that have new runs."""
    from conductor_app.processes.sweeps import run_and_record_sweep

    from ..definitions.durations import update_duration_baselines

    run_and_record_sweep("measure_usual", update_duration_baselines)


@app.task(name="conductor_app.background.jobs.alerts")
def alerts() -> None:
    """Check due alerts."""
    from conductor_app.alerts.commands import check_due_alerts
    from conductor_app.processes.sweeps import run_and_record_sweep

    run_and_record_sweep("ring_alerts", check_due_alerts)


@app.task(name="conductor_app.background.jobs.prune")
def prune() -> None:
    """Remove runs and records older than their retention period."""
    from conductor_app.processes.sweeps import prune_events, prune_finished, prune_sessions, run_and_record_sweep

    def prune_runs() -> None:
        for _ in range(MAX_PRUNE_PASSES):
            if run_and_record_sweep("prune_finished", prune_finished) < SWEEP_BATCH:
                break

    def repeat(name: str, sweep: Sweep) -> None:
        while run_and_record_sweep(name, sweep) and not _stopping.is_set():
            pass

    _run_each(
        prune_runs,
        partial(run_and_record_sweep, "prune_events", prune_events),
        *(partial(step, SWEEP_BATCH) for work in registered_work() for step in work.prune),
        partial(run_and_record_sweep, "prune_sessions", prune_sessions),
        *(partial(repeat, name, sweep) for work in registered_work() for name, sweep in work.prune_sweeps.items()),
    )


def _run_each(*steps: Callable[[], object]) -> None:
    """Run the steps of a job. An error in one does not stop the others; the next call of the job repeats it."""
    for step in steps:
        try:
            step()
        except Exception as error:
            if is_transient(error):
                log.warning("job_interrupted", extra={"why": describe_transient(error)})
            else:
                log.exception("job_step_failed")
            discard_broken_connection()


@task_prerun.connect
def bind_job_name(task_id: str, task: Any, **_: object) -> None:
    """Add the name and id of the job to its log lines."""
    log_context.reset(job=task.name.rpartition(".")[2], job_id=task_id)


@task_postrun.connect
def unbind_job_name(**_: object) -> None:
    """Remove the name and id of the job, because the thread executes other jobs next."""
    log_context.reset()


@worker_init.connect
def require_guards(**_: Any) -> None:
    """End the worker if a network guard has no effect. Other errors of a signal's receiver would only be logged."""
    from conductor_app.system_tasks.network_guard import require_network_guards

    require_network_guards()


@worker_ready.connect
def start_threads(**_: object) -> None:
    """Start to measure the usage of the connection pool, and to replace sweeps and jobs that Celery does not send."""
    metrics.start_recording()
    from conductor_app.processes.sweeps import sweep_until

    start_watchdog(sweep_until, process="worker", after_sweep=start_due_jobs)


@worker_shutting_down.connect
def stop_built_in_workers(**_: object) -> None:
    """Stop built-in workers from claiming, and release the tasks that they cannot finish in time."""
    _stopping.set()
    # In a thread, because a signal handler calls this function.
    Thread(target=_release_before_exit, name="release", daemon=True).start()


def _release_before_exit() -> None:
    from conductor_app.system_tasks.runner import release_unfinished

    sleep(FINISHING_SECONDS)
    release_unfinished()


@contextmanager
def _acquire(semaphore: BoundedSemaphore, seconds: float = 0) -> Iterator[bool]:
    """Try to acquire a semaphore within `seconds`, for the duration of the block. Yields True on success."""
    is_mine = semaphore.acquire(timeout=seconds) if seconds else semaphore.acquire(blocking=False)
    try:
        yield is_mine
    finally:
        if is_mine:
            semaphore.release()
