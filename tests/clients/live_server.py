"""A whole server in this process: a threaded web server on a free port, its sweeps, and its built-in workers."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from django.db import connections

from conductor_app.events.workers.publisher import publish_due_events
from conductor_app.processes.sweeps import sweep_until
from conductor_app.system_tasks.registry import run_built_in_workers
from conductor_app.testing.server_commands import ThreadedWebServer
from conductor_app.utils import clock
from conductor_app.wsgi import application

TICK_MS = 100


@contextmanager
def running_server() -> Iterator[str]:
    """Yield the URL of a server on the test database that runs during the block."""
    stopping = Event()
    jobs = Thread(target=run_periodic_jobs, args=(stopping,))
    web = ThreadedWebServer(application)
    jobs.start()
    try:
        with web.running() as url:
            yield url
    finally:
        stopping.set()
        jobs.join()
        # The transactions of requests of disconnected clients would block the flush of the tables.
        web.wait_for_open_requests()


def run_periodic_jobs(stopping: Event) -> None:
    """Run Celery's jobs: sweeps on time, and the built-in workers."""
    while not stopping.is_set():
        sweep_until(clock.now() + TICK_MS)
        run_built_in_workers(stopping.is_set)
        publish_due_events(stopping.is_set)
        stopping.wait(TICK_MS / 1000)
    connections.close_all()
