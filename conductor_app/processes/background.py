"""The background work of a process: what Celery's jobs call, and the workers of another Django project.

A function may be called at any time and any number of times, because the state is in the database. `PERIODIC_JOBS` has
the intervals.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import BoundedSemaphore, Event, Thread
from time import sleep
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connections

from ..db.transient_errors import describe_transient, discard_broken_connection, is_transient
from ..settings import conf
from ..system_tasks.registry import fast_queues, slow_queues
from ..utils import clock
from ..utils.background import Sweep, registered_work
from .sweep_loop import TICK_SECONDS
from .sweeps import SWEEP_BATCH, due_jobs

log = logging.getLogger(__name__)

THREADS_RESERVED_FOR_SWEEPS = 3
DEFAULT_THREADS = 8
"""The number of threads where the settings of another project name none."""
MAX_PRUNE_PASSES = 100
"""The maximum number of passes per call."""
MAX_BULK_MS = 5_000
"""The maximum duration of one call on bulk operations, in milliseconds."""
FINISHING_SECONDS = 2.0
"""The time in which a stopped process can finish its tasks, in seconds. `serve` kills it after four."""
JOB_MODULE = "conductor_app.background.jobs"
SWEEP_SECONDS = 5
"""The duration of one call of the job `sweep`. The next call continues."""


def _threads() -> int:
    return getattr(settings, "CELERY_WORKER_CONCURRENCY", DEFAULT_THREADS)


_working = BoundedSemaphore(max(1, _threads() - THREADS_RESERVED_FOR_SWEEPS))
_calling_models = BoundedSemaphore(conf.ai_task_threads)
_publishing = BoundedSemaphore(1)
_exporting = BoundedSemaphore(1)
_working_in_bulk = BoundedSemaphore(1)
stopping = Event()
"""Set when this process is about to stop."""


def start_due_jobs() -> None:
    """Start the jobs that have something to do in threads of this process, without the broker."""
    for name in due_jobs(fast_queues(), slow_queues()):
        Thread(target=run_job, args=(name,), name=name).start()


def run_job(name: str) -> None:
    """Call a job in this thread, which has no other work, and close its connections."""
    try:
        JOBS[name]()
    except Exception:
        log.exception("job_failed", extra={"job": name})
    finally:
        connections.close_all()


def work() -> None:
    """Execute the tasks of built-in workers until their queues are empty, and publish outbox messages.

    Some threads are reserved for sweeps. Publishing to a slow system blocks at most one thread.
    """
    from conductor_app.events.workers.publisher import publish_due_events
    from conductor_app.system_tasks.registry import run_built_in_workers

    with acquire(_working) as is_mine:
        if is_mine:
            run_each(partial(run_built_in_workers, stopping.is_set, fast_queues()))
    with acquire(_publishing) as is_mine:
        if is_mine:
            publishers = [publish_due_events, *(publish for work in registered_work() for publish in work.publish)]
            run_each(*(partial(publish, stopping.is_set) for publish in publishers))
    if any(work.export for work in registered_work()):
        Thread(target=run_job, args=("export",), name="export", daemon=True).start()


def export() -> None:
    """Send what other systems only observe, such as traces, unless a thread of this process does so already."""
    with acquire(_exporting) as is_mine:
        if is_mine:
            exports = [export for work in registered_work() for export in work.export]
            run_each(*(partial(export, stopping.is_set) for export in exports))


def execute_ai_tasks() -> None:
    """Execute AI tasks until their queues are empty, unless the maximum number of threads does so already."""
    from conductor_app.system_tasks.registry import run_built_in_workers

    with acquire(_calling_models) as is_mine:
        # The end of one task may put the next one of its run into a queue that was empty before.
        while is_mine and run_built_in_workers(stopping.is_set, slow_queues()):
            pass


def bulk() -> None:
    """Continue bulk operations, separately from sweeps, so that no lease waits for them."""
    from conductor_app.bulk.executor import run_operations_until
    from conductor_app.processes.sweeps import run_and_record_sweep

    def continue_operations(_: int) -> int:
        until, tick = clock.now() + MAX_BULK_MS, round(TICK_SECONDS * 1000)
        return run_operations_until(until, tick, stopping.is_set)

    with acquire(_working_in_bulk) as is_mine:
        if is_mine:
            run_and_record_sweep("work_bulk", continue_operations)


def measure() -> None:
    """Measure typical durations of definitions that have new runs."""
    from conductor_app.processes.sweeps import run_and_record_sweep

    from ..definitions.durations import update_duration_baselines

    run_and_record_sweep("measure_usual", update_duration_baselines)


def alerts() -> None:
    """Check due alerts."""
    from conductor_app.alerts.commands import check_due_alerts
    from conductor_app.processes.sweeps import run_and_record_sweep

    run_and_record_sweep("ring_alerts", check_due_alerts)


def prune() -> None:
    """Remove runs and records older than their retention period."""
    from conductor_app.processes.sweeps import prune_events, prune_finished, run_and_record_sweep

    def prune_runs() -> None:
        for _ in range(MAX_PRUNE_PASSES):
            if run_and_record_sweep("prune_finished", prune_finished) < SWEEP_BATCH:
                break

    def repeat(name: str, sweep: Sweep) -> None:
        while run_and_record_sweep(name, sweep) and not stopping.is_set():
            pass

    run_each(
        prune_runs,
        partial(run_and_record_sweep, "prune_events", prune_events),
        *(partial(step, SWEEP_BATCH) for work in registered_work() for step in work.prune),
        *(partial(repeat, name, sweep) for work in registered_work() for name, sweep in work.prune_sweeps.items()),
    )


JOBS: dict[str, Callable[[], None]] = {
    "work": work,
    "bulk": bulk,
    "call_models": execute_ai_tasks,
    "export": export,
    "measure": measure,
    "alerts": alerts,
    "prune": prune,
}
"""The functions of this module by the names of their jobs."""


def run_each(*steps: Callable[[], object]) -> None:
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


def release_before_exit() -> None:
    """Release the tasks of built-in workers that they cannot finish in time."""
    from conductor_app.system_tasks.registry import release_unfinished

    sleep(FINISHING_SECONDS)
    release_unfinished()


@contextmanager
def acquire(semaphore: BoundedSemaphore, seconds: float = 0) -> Iterator[bool]:
    """Try to acquire a semaphore within `seconds`, for the duration of the block. Yields True on success."""
    is_mine = semaphore.acquire(timeout=seconds) if seconds else semaphore.acquire(blocking=False)
    try:
        yield is_mine
    finally:
        if is_mine:
            semaphore.release()


@dataclass(frozen=True)
class PeriodicJob:
    """A job and the interval of its calls in seconds."""

    job: str
    every_seconds: int
    description: str

    @property
    def expire_seconds(self) -> int:
        """Return the age in seconds at which an undelivered message is dropped. A newer one has replaced it."""
        return self.every_seconds * 2


PERIODIC_JOBS = {
    "sweep": PeriodicJob(
        f"{JOB_MODULE}.sweep",
        SWEEP_SECONDS,
        "Ends expired leases, evaluates runs with due timers, delivers messages, and starts the jobs that are due.",
    ),
    "work": PeriodicJob(f"{JOB_MODULE}.work", 10, "Runs the built-in workers, which sweeps start when a task is due."),
    "bulk": PeriodicJob(f"{JOB_MODULE}.bulk", 10, "Continues bulk operations, which sweeps start when they are due."),
    "measure": PeriodicJob(f"{JOB_MODULE}.measure", 60, "Measures the typical durations of runs and steps."),
    "alerts": PeriodicJob(f"{JOB_MODULE}.alerts", 30, "Checks due alerts."),
    "prune": PeriodicJob(f"{JOB_MODULE}.prune", 3600, "Deletes runs and records that exceed their retention period."),
}


def sync_periodic_jobs() -> None:
    """Write the periodic jobs to django-celery-beat's tables. Jobs that an operator has disabled stay disabled."""
    from django_celery_beat.models import PeriodicTask

    for name, beat in PERIODIC_JOBS.items():
        values = {
            "task": beat.job,
            "interval": _interval_schedule(beat.every_seconds),
            "crontab": None,
            "expire_seconds": beat.expire_seconds,
            "description": beat.description,
        }
        if not PeriodicTask.objects.filter(name=name, **values).exists():
            PeriodicTask.objects.update_or_create(name=name, defaults=values)


def _interval_schedule(seconds: int) -> "IntervalSchedule":
    from django_celery_beat.models import IntervalSchedule

    period = IntervalSchedule.SECONDS
    schedule = IntervalSchedule.objects.filter(period=period, every=seconds).first()
    return schedule or IntervalSchedule.objects.create(period=period, every=seconds)


if TYPE_CHECKING:
    from django_celery_beat.models import IntervalSchedule
