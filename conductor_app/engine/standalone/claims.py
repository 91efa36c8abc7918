"""Handing out stand-alone tasks: the claim that all queues share, and the word that goes out with it."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from django.db import transaction

from ... import clock, conf, notifications
from ...core.errors import Conflict
from ...core.snapshot import Attempt
from ...core.standalone import reports
from ...core.standalone.effects import PublishMessage
from ...core.standalone.snapshot import StandaloneTask
from ...core.states import LEASED, PENDING
from ...store import standalone_claims, standalone_tasks
from ...store.statement_batch import StatementBatch
from ...telemetry import metrics
from ..pollers import note_poll
from ..tasks import HasLeft, always_connected, long_poll
from ..throughput import record_claims
from .pulse_messages import PUBLISHERS, pulse_message
from .rows import is_quarantined, record_worker


class ClaimedTask(NamedTuple):
    """One attempt that a worker holds now, with its task."""

    standalone: StandaloneTask
    attempt: Attempt
    definition: dict[str, Any]


def claim_tasks(
    queue: str, group: str, name: str, count: int, has_left: HasLeft = always_connected
) -> list[ClaimedTask]:
    """Hand out up to `count` attempts to a worker, waiting for the first. One in quarantine waits for nothing."""
    note_poll(queue, "", f"{group}/{name}")
    record_worker(queue, group, name, clock.now())
    wait_ms = round(conf.taskcluster_longest_wait * 1000)
    return long_poll(queue, wait_ms, lambda: _claim_now(queue, group, name, count), has_left)


@metrics.CLAIM_SECONDS.of
def _claim_now(queue: str, group: str, name: str, count: int) -> list[ClaimedTask]:
    """Hand out what the queue has now."""
    now = clock.now()
    if not standalone_claims.is_any_waiting(queue, group, name, now):
        return []
    with transaction.atomic():
        ids = standalone_claims.claim_attempts(queue, group, name, now, count)
        claimed = _load_and_publish(ids, now) if ids else []
    record_claims(each.attempt for each in claimed)
    return claimed


def claim_one(task_id: str, number: int, group: str, name: str) -> ClaimedTask:
    """Hand out one attempt that its worker names; to the same worker again, if it asks again. Raises Conflict."""
    worker, now = f"{group}/{name}", clock.now()
    standalone = standalone_tasks.load_task(task_id)
    record_worker(standalone.queue, group, name, now)
    attempt = reports.find_attempt(standalone, number)
    if is_quarantined(standalone.queue, group, name, now):
        raise Conflict(f"Worker {worker} is in quarantine.")
    if standalone.is_late(now):
        raise Conflict(f"The deadline of task {task_id} has passed.")
    if attempt.status == LEASED and attempt.worker == worker:
        return ClaimedTask(standalone, attempt, standalone_tasks.load_definition(task_id))
    with transaction.atomic():
        if attempt.status != PENDING or not standalone_claims.claim_attempt(attempt.id, worker, now):
            raise Conflict(f"Run {number} of task {task_id} is not to be had.")
        [claimed] = _load_and_publish([attempt.id], now)
    record_claims([claimed.attempt])
    return claimed


def _load_and_publish(ids: Sequence[str], now: int) -> list[ClaimedTask]:
    """What was claimed, in this order; who listens is told with the claim."""
    claimed = [
        ClaimedTask(standalone, standalone.attempts[-1], definition)
        for standalone, definition in standalone_claims.load_claimed(ids)
    ]
    writes = StatementBatch()
    standalone_tasks.insert_pulse_messages(
        writes,
        [
            pulse_message(each.standalone, "task-running", PublishMessage("running", each.attempt.number), now)
            for each in claimed
        ],
    )
    writes.send()
    if conf.taskcluster_amqp_url:
        transaction.on_commit(partial(notifications.announce, [PUBLISHERS]))
    return claimed
