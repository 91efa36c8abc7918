"""Run a whole server on one machine: migrate, then start and supervise web, Celery worker and beat."""

import socket
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections

from conductor_app.events.workers.consumer import has_configured_system
from conductor_app.processes import serving
from conductor_app.processes.serving import (
    ForkedCall,
    ManagedProcess,
    StartupBanner,
    Supervisor,
    listening_socket,
    prepare_server,
)
from conductor_app.settings import conf
from conductor_app.utils import memory_tuning


class Command(BaseCommand):
    """`manage.py serve`: listens on HOST and PORT."""

    requires_system_checks = (conf.CHECKS,)
    help = "Migrate the database, then run web, sweeps and built-in workers until Ctrl-C or SIGTERM."

    def handle(self, *args: object, **options: Any) -> None:
        with listening_socket(settings.HOST, settings.PORT) as listener:
            self._say("Starting the server. The first start creates the database, which takes a few seconds.")
            connections.close_all()
            preparation = ForkedCall(prepare_server)
            serving.load_modules()
            administrator = preparation.result()
            memory_tuning.tune_malloc()
            memory_tuning.tune_garbage_collection()
            banner = StartupBanner(settings.HOST, settings.PORT, administrator, self._say)
            Supervisor(managed_processes(listener), self.stderr.write).run(on_check=banner.print_when_ready)
        self._say("Stopped.")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def managed_processes(listener: socket.socket) -> list[ManagedProcess]:
    """Return web, worker and beat processes, and optional ones for brokers and isolation groups.

    Beat has its own process. Inside the worker, it would survive when the worker is killed.
    """
    heartbeats = Path(conf.heartbeat_folder)
    return [
        ManagedProcess("web", partial(serving.run_web, listener)),
        ManagedProcess("worker", partial(serving.run_worker, listener), heartbeat=heartbeats / "worker"),
        ManagedProcess("beat", partial(serving.run_beat, listener), heartbeat=heartbeats / "beat"),
        *(
            ManagedProcess(name, partial(serving.run_command, listener, command))
            for name, command, is_configured in (
                ("events", "listen_events", has_configured_system()),
                ("groups", "serve_groups", bool(conf.isolation_groups)),
            )
            if is_configured
        ),
    ]
