"""Run a whole server on one machine: migrate, then start and supervise web, Celery worker and beat."""

import socket
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections

from conductor_app import conf, gc_tuning
from conductor_app.management.first_run import prepare_server
from conductor_app.management.managed_process import ManagedProcess
from conductor_app.management.startup_banner import StartupBanner, listening_socket
from conductor_app.management.supervisor import Supervisor
from conductor_app.telemetry import folder
from conductor_app.workers.event_consumer import has_configured_system

PYTHON = (sys.executable, "-W", "ignore", "-m")
GUNICORN = (*PYTHON, "gunicorn", "-c", "python:conductor_app.settings.gunicorn")
LISTEN = (*PYTHON, "django", "listen_events")
GROUPS = (*PYTHON, "django", "serve_groups")
CELERY = (*PYTHON, "celery", "--quiet", "--skip-checks", "-A", "conductor_app")
"""The Celery command. It skips the system checks, which `serve` has run and which would load all pages."""


class Command(BaseCommand):
    """`manage.py serve`: listens on HOST and PORT."""

    requires_system_checks = (conf.CHECKS,)
    help = "Migrate the database, then run web, sweeps and built-in workers until Ctrl-C or SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        with listening_socket(settings.HOST, settings.PORT) as listener:
            administrator = prepare_server()
            connections.close_all()
            folder.empty_folder()
            gc_tuning.tune_garbage_collection()
            banner = StartupBanner(settings.HOST, settings.PORT, administrator, self._say)
            try:
                Supervisor(managed_processes(listener), self.stderr.write).run(on_check=banner.print_when_ready)
            finally:
                folder.remove_folder()
        self._say("Stopped.")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def managed_processes(listener: socket.socket) -> list[ManagedProcess]:
    """Return web, worker and beat processes, and optional ones for brokers and isolation groups.

    Beat has its own process. Inside the worker, it would survive when the worker is killed.
    """
    descriptor = listener.fileno()
    event_processes = [ManagedProcess("events", [*LISTEN])] if has_configured_system() else []
    group_processes = [ManagedProcess("groups", [*GROUPS])] if conf.isolation_groups else []
    return [
        ManagedProcess(
            "web", [*GUNICORN, "--bind", f"fd://{descriptor}", "conductor_app.wsgi"], inherits=(descriptor,)
        ),
        ManagedProcess(
            "worker",
            [*CELERY, "worker", "--without-gossip", "--without-mingle", "--without-heartbeat"],
            heartbeat=Path(conf.heartbeat_folder) / "worker",
        ),
        ManagedProcess("beat", [*CELERY, "beat"], heartbeat=Path(conf.heartbeat_folder) / "beat"),
        *event_processes,
        *group_processes,
    ]
