"""Handing out stand-alone tasks: the claim that all queues share, and the word that goes out with it."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from django.db import transaction

from ... import clock, conf, wakeups
from ...core.errors import Conflict
from ...core.snapshot import Attempt
from ...core.standalone import reports
from ...core.standalone.effects import Tell
from ...core.standalone.snapshot import StandaloneTask
from ...core.states import LEASED, PENDING
from ...store import standalone_claims, standalone_tasks
from ...store.statement_batch import Writes
from ...telemetry import measures
from ..pollers import note_poll
from ..tasks import HasLeft, never, waiting
from ..throughput import note_claims
from .notices import PUBLISHERS, notice
from .rows import is_quarantined, note_worker


class Claimed(NamedTuple):
    """One attempt that a worker holds now, with its task."""

    standalone: StandaloneTask
    attempt: Attempt
    definition: dict


def claim(queue: str, group: str, name: str, count: int, has_left: HasLeft = never) -> list[Claimed]:
    """Hand out up to `count` attempts to a worker, waiting for the first. One in quarantine waits for nothing."""
    note_poll(queue, "", f"{group}/{name}")
    note_worker(queue, group, name, clock.now())
    wait_ms = round(conf.taskcluster_longest_wait * 1000)
    return waiting(queue, wait_ms, lambda: _take(queue, group, name, count), has_left)


@measures.CLAIMS.of
def _take(queue: str, group: str, name: str, count: int) -> list[Claimed]:
    """Hand out what the queue has now."""
    now = clock.now()
    if not standalone_claims.is_any_waiting(queue, group, name, now):
        return []
    with transaction.atomic():
        ids = standalone_claims.take(queue, group, name, now, count)
        claimed = _told(ids, now) if ids else []
    note_claims(each.attempt for each in claimed)
    return claimed


def claim_one(task_id: str, number: int, group: str, name: str) -> Claimed:
    """Hand out one attempt that its worker names; to the same worker again, if it asks again. Raises Conflict."""
    worker, now = f"{group}/{name}", clock.now()
    standalone = standalone_tasks.find(task_id)
    note_worker(standalone.queue, group, name, now)
    attempt = reports.find(standalone, number)
    if is_quarantined(standalone.queue, group, name, now):
        raise Conflict(f"Worker {worker} is in quarantine.")
    if standalone.is_late(now):
        raise Conflict(f"The deadline of task {task_id} has passed.")
    if attempt.status == LEASED and attempt.worker == worker:
        return Claimed(standalone, attempt, standalone_tasks.definition_of(task_id))
    with transaction.atomic():
        if attempt.status != PENDING or not standalone_claims.take_one(attempt.id, worker, now):
            raise Conflict(f"Run {number} of task {task_id} is not to be had.")
        [claimed] = _told([attempt.id], now)
    note_claims([claimed.attempt])
    return claimed


def _told(ids: Sequence[str], now: int) -> list[Claimed]:
    """What was claimed, in this order; who listens is told with the claim."""
    claimed = [
        Claimed(standalone, standalone.attempts[-1], definition)
        for standalone, definition in standalone_claims.handed_out(ids)
    ]
    writes = Writes()
    standalone_tasks.tell(
        writes, [notice(each.standalone, "task-running", Tell("running", each.attempt.number), now) for each in claimed]
    )
    writes.send()
    if conf.taskcluster_amqp_url:
        transaction.on_commit(partial(wakeups.announce, [PUBLISHERS]))
    return claimed
