"""Consume the events of other systems that event handlers wait for, with one thread per event."""

import logging
import os
import socket
from collections.abc import Collection
from threading import Event, Thread
from time import monotonic

from django.db import connections

from ...core.errors import PayloadTooLarge
from ...core.events import INTERNAL
from ...db.database import connection
from ...db.transient_errors import discard_broken_connection
from ...utils import clock
from ..commands.intake import receive_event, record_listeners, remove_listeners
from ..models import EventHandler, EventListener
from ..sinks import PROVIDERS
from ..sinks.base import Provider, SinkFailed

log = logging.getLogger(__name__)

CHECK_SECONDS = 2.0
FIRST_PAUSE, MAX_PAUSE = 0.5, 30.0
HEALTHY_SECONDS = 60.0
RETRY_SECONDS = 60.0
STOP_SECONDS = 4.0
REPORT_EVERY_MS = 15_000


class QueueListener:
    """Thread that consumes one event queue until it is stopped."""

    def __init__(self, event: str, provider: Provider, queue: str) -> None:
        self.event, self._provider, self._queue = event, provider, queue
        self._reported: tuple[int | None, int | None] | None = None
        self._stop = Event()
        self.facts = EventListener(event=event, process=process_name(), seen_at=0)
        self._thread = Thread(target=self._listen, name=f"listens to {event}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop consuming. The current message is processed completely."""
        self._stop.set()

    def join(self, seconds: float) -> None:
        self._thread.join(max(seconds, 0))

    def needs_report(self, now: int) -> bool:
        """Return True if the state has changed since the last report, or the last report is too old."""
        last_reported, facts = self._reported, self.facts
        self._reported = (facts.connected_at, facts.failed_at)
        return last_reported != self._reported or now - facts.seen_at >= REPORT_EVERY_MS

    def _is_stopping(self) -> bool:
        """Return True if the consumer must stop. Providers call this only while they are connected."""
        if self.facts.connected_at is None:
            self.facts.connected_at, self.facts.error = clock.now(), ""
        return self._stop.is_set()

    def _record_failure(self, error: Exception) -> str:
        # Messages of other exceptions may contain the broker's address with its password, so only their type is logged.
        why = str(error) if isinstance(error, SinkFailed) else type(error).__name__
        self.facts.connected_at, self.facts.failed_at, self.facts.error = None, clock.now(), why
        return why

    def _listen(self) -> None:
        pause = FIRST_PAUSE
        while not self._stop.is_set():
            began = monotonic()
            try:
                self._provider.consume(self._queue, self._handle_message, self._is_stopping)
            except Exception as error:
                # The listener retries until no active handler waits for its event.
                log.warning("consumer_failed", extra={"event_name": self.event, "why": self._record_failure(error)})
            pause = FIRST_PAUSE if monotonic() - began > HEALTHY_SECONDS else pause
            self._stop.wait(pause)
            pause = min(pause * 2, MAX_PAUSE)
        connections.close_all()

    def _handle_message(self, message_id: str, payload: object) -> None:
        """Process a message. Failures are retried for RETRY_SECONDS, so that the broker need not redeliver it."""
        pause, ends_at = FIRST_PAUSE, monotonic() + RETRY_SECONDS
        while True:
            try:
                receive_event(self.event, message_id, payload, self._provider.name)
                self.facts.last_message_at = clock.now()
                break
            except PayloadTooLarge as refused:
                # It would be refused again and block the messages behind it.
                log.error("event_refused", extra={"event_name": self.event, "message_id": message_id})
                self.facts.failed_at, self.facts.error = clock.now(), refused.message
                break
            except Exception as error:
                log.warning("event_not_processed", extra={"event_name": self.event, "why": type(error).__name__})
                discard_broken_connection()
                connections.close_all()
                if self._stop.wait(pause) or monotonic() > ends_at:
                    raise
                pause = min(pause * 2, MAX_PAUSE)
        if connection.vendor != "sqlite":
            # A queue may be idle for days, and the pool has few connections.
            connection.close()


def configured_queues() -> dict[str, tuple[Provider, str]]:
    """Return the events of configured systems that active event handlers wait for."""
    names = EventHandler.objects.filter(is_active=True).values_list("event", flat=True).distinct()
    queues = {}
    for name in names:
        provider, _, queue = name.partition(":")
        if provider != INTERNAL and queue and provider in PROVIDERS and PROVIDERS[provider].is_configured:
            queues[name] = (PROVIDERS[provider], queue)
    return queues


def consume_events(stopping: Event) -> None:
    """Consume the events of all active handlers until `stopping`, and return when all threads have stopped."""
    listeners: dict[str, QueueListener] = {}
    try:
        while not stopping.is_set():
            before, listeners = listeners, _reconcile_listeners(listeners)
            _report_listeners(listeners, before.keys() - listeners.keys())
            stopping.wait(CHECK_SECONDS)
    finally:
        for listener in listeners.values():
            listener.stop()
        ends_at = monotonic() + STOP_SECONDS
        for listener in listeners.values():
            listener.join(ends_at - monotonic())
        _report_listeners({}, listeners.keys())


def process_name() -> str:
    return f"{socket.gethostname()[:100]}:{os.getpid()}"


def _reconcile_listeners(listeners: dict[str, QueueListener]) -> dict[str, QueueListener]:
    try:
        queues = configured_queues()
    except Exception as error:
        # The database is unreachable. Consumers continue and handle their own failures.
        log.warning("event_handlers_not_loaded", extra={"why": type(error).__name__})
        discard_broken_connection()
        return listeners
    finally:
        if connection.vendor != "sqlite" and not connection.in_atomic_block:
            connection.close()
    for name in listeners.keys() - queues.keys():
        listeners[name].stop()
    return {name: listeners.get(name) or QueueListener(name, *queue) for name, queue in queues.items()}


def _report_listeners(listeners: dict[str, QueueListener], gone: Collection[str]) -> None:
    """Store the states of the listeners for the pages. Listeners continue if this fails."""
    now = clock.now()
    rows = [listener.facts for listener in listeners.values() if listener.needs_report(now)]
    try:
        if rows:
            record_listeners(rows)
        if gone:
            remove_listeners(process_name(), gone)
    except Exception as error:
        log.warning("listener_states_not_saved", extra={"why": type(error).__name__})
        discard_broken_connection()
    finally:
        if connection.vendor != "sqlite" and not connection.in_atomic_block:
            connection.close()


def has_configured_system() -> bool:
    return any(provider.is_configured for name, provider in PROVIDERS.items() if name != INTERNAL)
