"""What Celery runs. Every job may be called at any time and any number of times: the truth is in the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Event, Thread
from time import sleep
from typing import Any

from celery.signals import task_postrun, task_prerun, worker_ready, worker_shutting_down
from django.conf import settings

from conductor_app import clock, conf
from conductor_app.celery import app
from conductor_app.telemetry import log_context, pool_metrics

THREADS_RESERVED_FOR_SWEEPS = 3
MAX_PRUNE_PASSES = 100
"""Passes that one call makes while there is still something to remove."""
MAX_BULK_MS = 5_000
"""How long one call goes on with operations on many runs: beat rings in between, but the one at work hears no bell."""
FINISHING_SECONDS = 2.0
"""How long a worker process that is told to stop goes on with its tasks: `serve` ends it after four."""

_sweeping = BoundedSemaphore(1)
_working = BoundedSemaphore(max(1, settings.CELERY_WORKER_CONCURRENCY - THREADS_RESERVED_FOR_SWEEPS))
_publishing = BoundedSemaphore(1)
_working_in_bulk = BoundedSemaphore(1)
_stopping = Event()


@app.task(name="conductor_app.background.jobs.sweep")
def sweep() -> None:
    """Handle what is due, and what becomes due until the next call; one at a time in a process."""
    from conductor_app.engine.sweeps import sweep_until

    tick = conf.sweep_tick_seconds
    # The next call comes while this one still watches; it waits at the door, so that no moment goes unwatched.
    with _acquire(_sweeping, seconds=tick) as is_mine:
        if is_mine:
            sweep_until(clock.now() + round(tick * 1000))


@app.task(name="conductor_app.background.jobs.work")
def work() -> None:
    """Serve the queues of the built-in workers until they are empty, and tell other systems what waits for them.

    Some threads stay free for sweeps, and a system that is slow to hear holds no more than one.
    """
    from conductor_app.workers.event_publisher import publish_due_events
    from conductor_app.workers.pulse_publisher import publish_due_messages
    from conductor_app.workers.runner import run_built_in_workers

    with _acquire(_working) as is_mine:
        if is_mine:
            run_built_in_workers(_stopping.is_set)
    with _acquire(_publishing) as is_mine:
        if is_mine:
            publish_due_events(_stopping.is_set)
            publish_due_messages(_stopping.is_set)


@app.task(name="conductor_app.background.jobs.bulk")
def bulk() -> None:
    """Go on with operations on many runs; beside the sweeps, so that no lease waits for them."""
    from conductor_app.engine.bulk import run_operations_until
    from conductor_app.engine.sweeps import run_and_record_sweep

    def go_on(_: int) -> int:
        until, tick = clock.now() + MAX_BULK_MS, round(conf.sweep_tick_seconds * 1000)
        return run_operations_until(until, tick, _stopping.is_set)

    with _acquire(_working_in_bulk) as is_mine:
        if is_mine:
            run_and_record_sweep("work_bulk", go_on)


@app.task(name="conductor_app.background.jobs.measure")
def measure() -> None:
    """Measure what is usual, of what has changed."""
    from conductor_app.engine.definitions.duration_baselines import update_duration_baselines
    from conductor_app.engine.sweeps import run_and_record_sweep

    run_and_record_sweep("measure_usual", update_duration_baselines)


@app.task(name="conductor_app.background.jobs.alerts")
def alerts() -> None:
    """Look at the alerts that are due, and at the groups that somebody watches."""
    from conductor_app.engine.failures.alerts import check_due_alerts
    from conductor_app.engine.standalone.watches import check_watched_groups
    from conductor_app.engine.sweeps import run_and_record_sweep

    run_and_record_sweep("ring_alerts", check_due_alerts)
    run_and_record_sweep("watch_groups", check_watched_groups)


@app.task(name="conductor_app.background.jobs.prune")
def prune() -> None:
    """Remove what is older than its retention."""
    from conductor_app.engine.sweeps import expire_tasks, prune_events, prune_finished, run_and_record_sweep

    for _ in range(MAX_PRUNE_PASSES):
        if run_and_record_sweep("prune_finished", prune_finished) < conf.sweep_batch:
            break
    run_and_record_sweep("prune_events", prune_events)
    while run_and_record_sweep("expire_tasks", expire_tasks) and not _stopping.is_set():
        pass


@task_prerun.connect
def bind_job_name(task_id: str, task: Any, **_: Any) -> None:
    """Let the lines of a job say which job it is."""
    log_context.reset(job=task.name.rpartition(".")[2], job_id=task_id)


@task_postrun.connect
def unbind_job_name(**_: Any) -> None:
    """The thread goes on to other jobs."""
    log_context.reset()


@worker_ready.connect
def start_pool_metrics(**_: Any) -> None:
    """Note how this process uses its pool of connections."""
    pool_metrics.start_recording()


@worker_shutting_down.connect
def stop_built_in_workers(**_: Any) -> None:
    """Let the built-in workers take nothing more, and give up what they cannot finish in time."""
    _stopping.set()
    # In a thread, because this is called by the handler of a signal.
    Thread(target=_hand_back_before_exit, name="handing back", daemon=True).start()


def _hand_back_before_exit() -> None:
    from conductor_app.workers.runner import release_unfinished

    sleep(FINISHING_SECONDS)
    release_unfinished()


@contextmanager
def _acquire(door: BoundedSemaphore, seconds: float = 0) -> Iterator[bool]:
    """Whether there was room within so many seconds; it is held while the block runs."""
    is_mine = door.acquire(timeout=seconds) if seconds else door.acquire(blocking=False)
    try:
        yield is_mine
    finally:
        if is_mine:
            door.release()
