"""Throughput of queues and workers, counted in memory and written every few seconds.

Only admin pages read these counts, so the counts that a process loses when it dies do no harm.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable
from threading import Lock
from typing import Any

from ..core.decide import Decision
from ..core.effects import CreateTask, OpenAttempt, TransitionAttempt
from ..core.snapshot import Attempt, Run
from ..db.database import transaction
from ..utils import clock, process_state
from . import store
from .models import MinuteCount
from .store import ClaimedAttempt

log = logging.getLogger(__name__)

MINUTE_MS = 60_000
WRITTEN_EVERY_MS = 5_000
HOUR_MS = 3_600_000
MINUTES_KEPT_MS, RETENTION_MS = 2 * 86_400_000, 31 * 86_400_000
"""Counts per minute are kept for two days. Older ones are added up to counts per hour."""
COMPACTED_MS = 6 * HOUR_MS
"""The hours that one pass adds up. A pass runs every hour."""
FIELDS = ("scheduled", "started", "done", "failed", "busy_ms")
ENDS = {"complete": "done", "fail": "failed", "fail_for_good": "failed", "expire": "failed"}
"""The events that end a worker's attempt, and the fields that count them."""


class CountBuffer:
    """Counts of this process that are not written yet."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.counts: dict[tuple[str, str, int], dict[str, int]] = {}
        self.written_at: int | None = None

    def add(self, kind: str, name: str, now: int, **counts: int) -> None:
        with self.lock:
            row = self.counts.setdefault((kind, name, now - now % MINUTE_MS), defaultdict(int))
            for field, count in counts.items():
                row[field] += count

    def due(self, now: int) -> dict[tuple[str, str, int], dict[str, int]]:
        """Remove and return the counts if they are due to be written, otherwise return an empty dict."""
        with self.lock:
            if not self.counts:
                return {}
            if self.written_at is None or now < self.written_at:
                self.written_at = now
            if now - self.written_at < WRITTEN_EVERY_MS:
                return {}
            taken, self.counts, self.written_at = self.counts, {}, now
            return taken


_buffer = process_state.slot(CountBuffer)


def record_claims(taken: Iterable[ClaimedAttempt | Attempt]) -> None:
    now = clock.now()
    for attempt in taken:
        _buffer.value.add(MinuteCount.QUEUE, attempt.queue, now, started=1)
        if attempt.worker:
            _buffer.value.add(MinuteCount.WORKER, attempt.worker, now, started=1)
    write_if_due()


def record_decision(before: Run, decision: Decision) -> None:
    """Count the attempts that a decision scheduled or ended."""
    now = clock.now()
    for effect in decision.effects:
        if isinstance(effect, CreateTask):
            record_scheduled(effect.task.attempt, now)
        elif isinstance(effect, OpenAttempt):
            record_scheduled(effect.attempt, now)
        elif isinstance(effect, TransitionAttempt):
            _record_end(effect, before, now)
    write_if_due()


def record_scheduled(attempt: Attempt, now: int) -> None:
    """Count an attempt that was created for a queue."""
    if attempt.queue and attempt.is_open:
        _buffer.value.add(MinuteCount.QUEUE, attempt.queue, now, scheduled=1)


def _record_end(effect: TransitionAttempt, before: Run, now: int) -> None:
    if (task := before.tasks.get(effect.key)) is not None:
        record_outcome(task.attempt, effect.event, effect.facts.get("worker") or task.attempt.worker, now)


def record_outcome(attempt: Attempt, event: str, worker: str, now: int) -> None:
    """Count an attempt that the event has ended, if it was open and in a queue."""
    field = ENDS.get(event)
    if field is None or not attempt.queue or not attempt.is_open:
        return
    busy = max(now - (attempt.started_at or now), 0)
    _buffer.value.add(MinuteCount.QUEUE, attempt.queue, now, **{field: 1, "busy_ms": busy})
    if worker:
        _buffer.value.add(MinuteCount.WORKER, worker, now, **{field: 1, "busy_ms": busy})


def write_if_due() -> None:
    """Write the counts if they are due. An error is logged and ignored."""
    if counts := _buffer.value.due(clock.now()):
        try:
            rows: list[Any] = [(*place, *(row.get(field, 0) for field in FIELDS)) for place, row in counts.items()]
            store.add_counts(rows)
        except Exception:
            log.exception("throughput_not_written")


def prune_counts() -> None:
    """Add up old minutes to hours, and delete the counts that are older than the pages show."""
    now = clock.now()
    MinuteCount.objects.filter(at__lt=now - RETENTION_MS).delete()
    until = (now - MINUTES_KEPT_MS) // HOUR_MS * HOUR_MS
    with transaction.atomic():
        store.add_up_hours(until - COMPACTED_MS, until)
