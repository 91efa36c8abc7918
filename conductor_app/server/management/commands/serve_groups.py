"""Run the built-in workers of isolation groups in a separate process."""

import signal
from threading import Event
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conductor_app.settings import conf
from conductor_app.system_tasks.network_guard import require_network_guards
from conductor_app.system_tasks.registry import queues_of_groups, serve_groups


class Command(BaseCommand):
    """`manage.py serve_groups`: serves the groups in ISOLATION_GROUPS until SIGTERM or Ctrl-C."""

    help = "Run the built-in workers of the groups in ISOLATION_GROUPS."

    def handle(self, *args: object, **options: Any) -> None:
        if not conf.isolation_groups:
            raise CommandError("ISOLATION_GROUPS is empty. Set it, for example ISOLATION_GROUPS=blue,green.")
        require_network_guards()
        stopping = Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopping.set())
        self.stdout.write(f"Serving {', '.join(queues_of_groups(conf.isolation_groups))}")
        self.stdout.flush()
        serve_groups(stopping)
