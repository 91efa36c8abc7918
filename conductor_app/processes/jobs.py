"""Celery jobs. A job may run at any time and any number of times, because the state is in the database."""

from threading import BoundedSemaphore, Thread
from time import monotonic
from typing import Any

from celery.signals import task_postrun, task_prerun, worker_init, worker_ready, worker_shutting_down

from conductor_app.celery import app
from conductor_app.processes import background
from conductor_app.processes.background import SWEEP_SECONDS
from conductor_app.processes.sweep_loop import start_watchdog, sweep_until_time
from conductor_app.processes.sweeps import sweep_until
from conductor_app.telemetry import log_context, metrics

OVERLAP_SECONDS = 0.5
"""The time for which a call of `sweep` continues after the next one is due, which then waits."""

_sweeping = BoundedSemaphore(1)


@app.task(name="conductor_app.background.jobs.sweep")
def sweep(seconds: float = SWEEP_SECONDS + OVERLAP_SECONDS) -> None:
    """Handle due rows until the next call. One call runs at a time per process."""
    ends_at = monotonic() + seconds
    # The next call blocks on the semaphore while this one still waits for due rows, so that sweeps run without a gap.
    with background.acquire(_sweeping, seconds=seconds) as is_mine:
        if is_mine:
            sweep_until_time(ends_at, background.stopping, background.start_due_jobs)


@app.task(name="conductor_app.background.jobs.work")
def work() -> None:
    """Execute the tasks of built-in workers until their queues are empty, and publish outbox messages.

    Some threads are reserved for sweeps. Publishing to a slow system blocks at most one thread.
    """
    background.work()


@app.task(name="conductor_app.background.jobs.call_models")
def call_models() -> None:
    """Start a thread that executes AI tasks, because a call of a model takes minutes and Celery has few threads."""
    Thread(target=background.run_job, args=("call_models",), name="call_models", daemon=True).start()


@app.task(name="conductor_app.background.jobs.bulk")
def bulk() -> None:
    """Continue bulk operations, separately from sweeps, so that no lease waits for them."""
    background.bulk()


@app.task(name="conductor_app.background.jobs.measure")
def measure() -> None:
    """Measure typical durations of definitions that have new runs."""
    background.measure()


@app.task(name="conductor_app.background.jobs.alerts")
def alerts() -> None:
    """Check due alerts."""
    background.alerts()


@app.task(name="conductor_app.background.jobs.prune")
def prune() -> None:
    """Remove runs and records older than their retention period."""
    background.prune()


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
    start_watchdog(sweep_until, process="worker", after_sweep=background.start_due_jobs)


@worker_shutting_down.connect
def stop_built_in_workers(**_: object) -> None:
    """Stop built-in workers from claiming, and release the tasks that they cannot finish in time."""
    background.stopping.set()
    # In a thread, because a signal handler calls this function.
    Thread(target=background.release_before_exit, name="release", daemon=True).start()
