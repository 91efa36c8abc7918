"""Handing out stand-alone tasks: the claim that all queues share, and the word that goes out with it."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from django.db import transaction

from ... import clock, conf, wakeups
from ...core.errors import Conflict
from ...core.snapshot import Attempt
from ...core.solo import reports
from ...core.solo.effects import Tell
from ...core.solo.snapshot import Solo
from ...core.states import LEASED, PENDING
from ...store import claims, solos
from ...store.writes import Writes
from ...telemetry import measures
from ..pollers import note_poll
from ..tasks import waiting
from .notices import PUBLISHERS, notice
from .rows import note_worker


class Claimed(NamedTuple):
    """One attempt that a worker holds now, with its task."""

    solo: Solo
    attempt: Attempt
    definition: dict


def claim(queue: str, group: str, name: str, count: int) -> list[Claimed]:
    """Hand out up to `count` attempts to a worker, waiting for the first. One in quarantine waits for nothing."""
    worker = f"{group}/{name}"
    note_poll(queue, "", worker)

    def take() -> list[Claimed]:
        row = note_worker(queue, group, name, clock.now())
        return [] if row.quarantine_until > clock.now() else _take(queue, worker, count)

    return waiting(queue, round(conf.taskcluster_longest_wait * 1000), take)


@measures.CLAIMS.of
def _take(queue: str, worker: str, count: int) -> list[Claimed]:
    """Hand out what the queue has now."""
    now = clock.now()
    if not claims.candidates(queue, worker, now, count, alone=True):
        return []
    with transaction.atomic():
        ids = claims.take_unlimited(queue, worker, now, count, [queue], alone=True)
        return _told(ids, now) if ids else []


def claim_one(task_id: str, number: int, group: str, name: str) -> Claimed:
    """Hand out one attempt that its worker names; to the same worker again, if it asks again. Raises Conflict."""
    worker = f"{group}/{name}"
    [solo] = solos.load([task_id]) or [solos.lock(task_id)]
    now = clock.now()
    row = note_worker(solo.queue, group, name, now)
    attempt = reports.find(solo, number)
    if row.quarantine_until > now:
        raise Conflict(f"Worker {worker} is in quarantine.")
    if solo.is_late(now):
        raise Conflict(f"The deadline of task {task_id} has passed.")
    if attempt.status == LEASED and attempt.worker == worker:
        return Claimed(solo, attempt, solos.definition_of(task_id))
    with transaction.atomic():
        if attempt.status != PENDING or not claims.take_one(attempt.id, worker, now):
            raise Conflict(f"Run {number} of task {task_id} is not to be had.")
        return _told([attempt.id], now)[0]


def _told(ids: Sequence[str], now: int) -> list[Claimed]:
    """What was claimed, best first; who listens is told with the claim."""
    found = solos.of_attempts(ids)
    claimed = [(solo, next(a for a in solo.attempts if a.id == id)) for id, solo in found.items()]
    claimed.sort(key=lambda pair: (-pair[1].priority, pair[1].visible_at, pair[1].id))
    writes = Writes()
    solos.tell(writes, [notice(solo, "task-running", Tell("running", a.number), now) for solo, a in claimed])
    writes.send()
    if conf.taskcluster_amqp_url:
        transaction.on_commit(partial(wakeups.announce, [PUBLISHERS]))
    definitions = solos.definitions_of([solo.id for solo, _ in claimed])
    return [Claimed(solo, attempt, definitions[solo.id]) for solo, attempt in claimed]
