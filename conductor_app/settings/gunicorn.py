"""Gunicorn's settings, for `serve` and for a cluster.

`gunicorn -c python:conductor_app.settings.gunicorn conductor_app.wsgi`
"""

import signal
from threading import Thread
from types import FrameType
from typing import Any

from conductor_app.telemetry import folder

from . import environment

host = environment.text("HOST", "127.0.0.1")
bind = f"{f'[{host}]' if ':' in host else host}:{environment.number('PORT', 8000)}"
# The worker class extends Gunicorn's threaded worker in ways that are no public interface; `gthread` does without.
worker_class = (
    "conductor_app.gunicorn_worker.KeepAliveThreadWorker"
    if environment.boolean("WEB_KEEP_ALIVE_THREADS", True)
    else "gthread"
)
workers = environment.number("WEB_WORKERS", 1, least=1)
# Each long poll that waits holds one thread and no connection; 256 sleeping threads cost about 15 MB.
threads = environment.number("WEB_THREADS", environment.WEB_THREADS, least=4)
# All must stop within 5 s: waiting polls return at once, and requests that still run after this time are cut off.
graceful_timeout = 3
# Workers poll continuously: a kept connection saves the handshake.
keepalive = 75
limit_request_line = 8190
# A signature carries the certificate along, and that the scopes of a task: a hundred of them still fit.
limit_request_field_size = 32_768
loglevel = "warning"
control_socket_disable = True


def on_starting(server: Any) -> None:
    """Prepare the metrics before the web processes start: any process can return the sums of all."""
    folder.empty_folder()


def on_exit(server: Any) -> None:
    """Remove the metrics after all web processes have ended."""
    folder.remove_folder()


def post_worker_init(worker: Any) -> None:
    """Prepare a web process, which has loaded everything by now."""
    from conductor_app import gc_tuning, notifications
    from conductor_app.telemetry import pool_metrics

    notifications.prepare_backend()
    pool_metrics.start_recording()
    gc_tuning.tune_garbage_collection()
    end_polls_on_stop()


def end_polls_on_stop() -> None:
    """End waiting polls when this process is told to stop, so that they return at once instead of being cut off."""
    from conductor_app import notifications

    stop = signal.getsignal(signal.SIGTERM)

    def answer_and_stop(number: int, frame: FrameType | None) -> None:
        stop(number, frame)
        # In a thread, because the interrupted code may hold the lock.
        Thread(target=notifications.wake_all_and_close, name="closing").start()

    signal.signal(signal.SIGTERM, answer_and_stop)
