"""Gunicorn's settings, for `serve` and for a cluster.

`gunicorn -c python:conductor_app.processes.gunicorn_config conductor_app.wsgi`
"""

import os
import resource
import signal
from threading import Thread
from types import FrameType
from typing import Any

from conductor_app.telemetry import folder
from conductor_app.web import gunicorn_internals

from ..settings import table

host = table.read("HOST")
bind = f"{f'[{host}]' if ':' in host else host}:{table.read('PORT')}"
# `gthread` with a version of Gunicorn that the worker of this server does not support.
worker_class = gunicorn_internals.worker_class()
workers = table.read("WEB_WORKERS")
# A waiting long poll needs a connection, but no thread.
threads = table.read("WEB_THREADS")
# The maximum number of connections of a process, most of which are idle, slow or waiting and need no thread.
worker_connections = table.read("WEB_CONNECTIONS")
# All processes must stop within 5 s. Waiting polls return at once; other requests are aborted after this time.
graceful_timeout = 3
# Workers poll continuously, so open connections save handshakes.
keepalive = 75
limit_request_line = 8190
# A signature header contains a certificate with the scopes of a task. This size suffices for about 100 scopes.
limit_request_field_size = 32_768
loglevel = "warning"
control_socket_disable = True


def on_starting(server: Any) -> None:
    """Prepare what the web processes share: metrics, the limit of open connections, and loaded modules."""
    from django.urls import get_resolver

    from conductor_app.settings import conf
    from conductor_app.utils import memory_tuning

    folder.empty_folder()
    memory_tuning.tune_malloc()
    # `preload_app` would load the application before the folder of the metrics exists.
    server.app.wsgi()
    from conductor_app.system_tasks.network_guard import require_network_guards

    require_network_guards()
    gunicorn_internals.permit_repeated_headers()
    if warning := gunicorn_internals.describe_fallback(conf.max_waiting_threads, conf.max_waiting_polls):
        server.log.warning(warning)
    # Django would load the views and pages with the first request, in each process.
    _ = get_resolver().url_patterns
    memory_tuning.tune_garbage_collection()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * worker_connections
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
        )


def on_exit(server: Any) -> None:
    """Remove the metrics after all web processes have ended."""
    folder.remove_folder()


def post_worker_init(worker: Any) -> None:
    """Prepare a web process after it has loaded the application."""
    from conductor_app import notifications
    from conductor_app.processes.sweep_loop import start_watchdog
    from conductor_app.processes.sweeps import sweep_until
    from conductor_app.telemetry import metrics
    from conductor_app.utils import memory_tuning

    # The application serves the prefix of paths itself: Gunicorn replies 500 to every other path.
    os.environ.pop("SCRIPT_NAME", None)
    notifications.prepare_backend()
    metrics.start_recording()
    start_watchdog(sweep_until)
    memory_tuning.tune_garbage_collection()
    end_polls_on_stop()


def end_polls_on_stop() -> None:
    """End waiting polls on SIGTERM, so that they return at once instead of being aborted."""
    from conductor_app import notifications

    stop_worker = signal.getsignal(signal.SIGTERM)

    def end_polls(number: int, frame: FrameType | None) -> None:
        if callable(stop_worker):
            stop_worker(number, frame)
        # In a thread, because the interrupted code may hold the lock of the waiters.
        Thread(target=notifications.wake_all_and_close, name="closing").start()

    signal.signal(signal.SIGTERM, end_polls)
