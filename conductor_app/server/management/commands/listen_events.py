"""Receive events from the configured brokers."""

import signal
from threading import Event
from typing import Any

from django.core.management.base import BaseCommand

from conductor_app.events.workers.consumer import consume_events


class Command(BaseCommand):
    """`manage.py listen_events`: consumes the queues of active event handlers, until SIGTERM or Ctrl-C."""

    help = "Receive events from the brokers in EVENT_QUEUES_… and pass them to event handlers."

    def handle(self, *args: object, **options: Any) -> None:
        stopping = Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopping.set())
        consume_events(stopping)
