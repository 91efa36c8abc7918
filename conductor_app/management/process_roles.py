"""What each process of `serve` executes. The processes are forked, so that they share the memory of loaded modules."""

import os
import socket
import sys
import warnings
from importlib import import_module

from django.core.management import call_command
from django.urls import get_resolver
from gunicorn.app.wsgiapp import WSGIApplication

from conductor_app.celery import app

PRELOADED = (
    *("conductor_app.wsgi", "conductor_app.gunicorn_worker", "conductor_app.settings.gunicorn", "gunicorn.arbiter"),
    *("conductor_app.background.filesystem_broker", "conductor_app.background.leader_scheduler"),
    *("celery.apps.beat", "celery.apps.worker", "celery.app.amqp", "celery.app.log", "celery.concurrency.thread"),
    *("celery.events.dispatcher", "celery.worker.components", "celery.worker.consumer", "celery.worker.control"),
)
"""Modules that gunicorn and Celery would otherwise load in each process."""


def load_modules() -> None:
    """Load everything that a process loads at its start or with its first request. Call it before the first fork."""
    for name in PRELOADED:
        import_module(name)
    _ = get_resolver().url_patterns
    # `serve` has run the checks of Django that concern the configuration.
    os.environ["CELERY_SKIP_CHECKS"] = "true"
    app.loader.init_worker()
    app.finalize()


def run_web(listener: socket.socket) -> None:
    """Run gunicorn on this socket until a stop signal."""
    warnings.simplefilter("ignore")
    config = ("--config", "python:conductor_app.settings.gunicorn", "--bind", f"fd://{listener.fileno()}")
    sys.argv = ["gunicorn", *config, "conductor_app.wsgi"]
    WSGIApplication(prog="gunicorn").run()


def run_worker(listener: socket.socket) -> None:
    """Run the Celery worker until a stop signal."""
    listener.close()
    warnings.simplefilter("ignore")
    worker = app.Worker(quiet=True, without_gossip=True, without_mingle=True, without_heartbeat=True)
    worker.start()
    sys.exit(worker.exitcode)


def run_beat(listener: socket.socket) -> None:
    """Run Celery beat until a stop signal."""
    listener.close()
    warnings.simplefilter("ignore")
    app.Beat(quiet=True).run()


def run_command(listener: socket.socket, name: str) -> None:
    """Run a command of `manage.py` until a stop signal."""
    listener.close()
    call_command(name)
