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
from conductor_app.telemetry import log_context, pools

THREADS_KEPT_FOR_SWEEPS = 3
MOST_PRUNES = 100
"""Passes that one call makes while there is still something to remove."""
LONGEST_IN_BULK_MS = 5_000
"""How long one call goes on with operations on many runs: beat rings in between, but the one at work hears no bell."""
FINISHING_SECONDS = 2.0
"""How long a worker process that is told to stop goes on with its tasks: `serve` ends it after four."""

_sweeping = BoundedSemaphore(1)
_working = BoundedSemaphore(max(1, settings.CELERY_WORKER_CONCURRENCY - THREADS_KEPT_FOR_SWEEPS))
_publishing = BoundedSemaphore(1)
_working_in_bulk = BoundedSemaphore(1)
_stopping = Event()


@app.task(name="conductor_app.background.jobs.sweep")
def sweep() -> None:
    """Handle what is due, and what becomes due until the next call; one at a time in a process."""
    from conductor_app.engine.sweeps import sweep_until

    tick = conf.sweep_tick_seconds
    # The next call comes while this one still watches; it waits at the door, so that no moment goes unwatched.
    with _entered(_sweeping, seconds=tick) as is_mine:
        if is_mine:
            sweep_until(clock.now() + round(tick * 1000))


@app.task(name="conductor_app.background.jobs.work")
def work() -> None:
    """Serve the queues of the built-in workers until they are empty, and tell other systems what waits for them.

    Some threads stay free for sweeps, and a system that is slow to hear holds no more than one.
    """
    from conductor_app.workers.announcing import announce_off
    from conductor_app.workers.publishing import publish_off
    from conductor_app.workers.runner import work_off

    with _entered(_working) as is_mine:
        if is_mine:
            work_off(_stopping.is_set)
    with _entered(_publishing) as is_mine:
        if is_mine:
            publish_off(_stopping.is_set)
            announce_off(_stopping.is_set)


@app.task(name="conductor_app.background.jobs.bulk")
def bulk() -> None:
    """Go on with operations on many runs; beside the sweeps, so that no lease waits for them."""
    from conductor_app.engine.bulk_operations import work_off_until
    from conductor_app.engine.sweeps import noted_pass

    def go_on(_: int) -> int:
        until, tick = clock.now() + LONGEST_IN_BULK_MS, round(conf.sweep_tick_seconds * 1000)
        return work_off_until(until, tick, _stopping.is_set)

    with _entered(_working_in_bulk) as is_mine:
        if is_mine:
            noted_pass("work_bulk", go_on)


@app.task(name="conductor_app.background.jobs.measure")
def measure() -> None:
    """Measure what is usual, of what has changed."""
    from conductor_app.engine.duration_baselines import measure_usual
    from conductor_app.engine.sweeps import noted_pass

    noted_pass("measure_usual", measure_usual)


@app.task(name="conductor_app.background.jobs.alerts")
def alerts() -> None:
    """Look at the alerts that are due, and at the groups that somebody watches."""
    from conductor_app.engine.alerts import ring
    from conductor_app.engine.groups.watches import look
    from conductor_app.engine.sweeps import noted_pass

    noted_pass("ring_alerts", ring)
    noted_pass("watch_groups", look)


@app.task(name="conductor_app.background.jobs.prune")
def prune() -> None:
    """Remove what is older than its retention."""
    from conductor_app.engine.sweeps import expire_tasks, noted_pass, prune_events, prune_finished

    for _ in range(MOST_PRUNES):
        if noted_pass("prune_finished", prune_finished) < conf.sweep_batch:
            break
    noted_pass("prune_events", prune_events)
    while noted_pass("expire_tasks", expire_tasks) and not _stopping.is_set():
        pass


@task_prerun.connect
def name_lines(task_id: str, task: Any, **_: Any) -> None:
    """Let the lines of a job say which job it is."""
    log_context.begin(job=task.name.rpartition(".")[2], job_id=task_id)


@task_postrun.connect
def forget_name(**_: Any) -> None:
    """The thread goes on to other jobs."""
    log_context.begin()


@worker_ready.connect
def watch_pool(**_: Any) -> None:
    """Note how this process uses its pool of connections."""
    pools.keep_looking()


@worker_shutting_down.connect
def stop_working(**_: Any) -> None:
    """Let the built-in workers take nothing more, and give up what they cannot finish in time."""
    _stopping.set()
    # In a thread, because this is called by the handler of a signal.
    Thread(target=_hand_back_in_time, name="handing back", daemon=True).start()


def _hand_back_in_time() -> None:
    from conductor_app.workers.runner import hand_back

    sleep(FINISHING_SECONDS)
    hand_back()


@contextmanager
def _entered(door: BoundedSemaphore, seconds: float = 0) -> Iterator[bool]:
    """Whether there was room within so many seconds; it is held while the block runs."""
    is_mine = door.acquire(timeout=seconds) if seconds else door.acquire(blocking=False)
    try:
        yield is_mine
    finally:
        if is_mine:
            door.release()
