"""Claims of standalone tasks, and the Pulse messages that go with them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from django.db import transaction

from ... import clock, conf, notifications
from ...core.errors import Conflict
from ...core.snapshot import Attempt
from ...core.standalone import reports
from ...core.standalone.effects import PublishMessage
from ...core.standalone.snapshot import StandaloneTask
from ...core.states import LEASED, PENDING
from ...notifications import LOCAL_CALLER, WaitingClient, WaitSteps, wait_in_thread
from ...store import standalone_claims, standalone_tasks
from ...store.statement_batch import StatementBatch
from ...telemetry import metrics
from ..queues.pollers import record_poll
from ..queues.queue_lookups import standalone_queue
from ..queues.throughput import record_claims
from ..tasks.long_polls import LongPoll, begin_poll
from ..tasks.task_commands import release_again, releasing_undelivered
from .pulse_messages import PUBLISHERS, pulse_message
from .standalone_rows import is_quarantined, record_worker

CLAIM_WAIT_SECONDS = 20.0
"""The time that a claim waits for work. Clients time out after 30 s."""

Rendered = TypeVar("Rendered")


class ClaimedTask(NamedTuple):
    """An attempt that a worker has claimed, with its task."""

    standalone: StandaloneTask
    attempt: Attempt
    definition: dict[str, Any]


def claim_tasks(queue: str, group: str, name: str, count: int) -> list[ClaimedTask]:
    """Claim up to `count` attempts for a worker, with a long poll. A quarantined worker receives none."""
    return wait_in_thread(begin_claim(queue, group, name, count))


def begin_claim(
    queue: str, group: str, name: str, count: int, client: WaitingClient = LOCAL_CALLER
) -> WaitSteps[list[ClaimedTask]]:
    """Return the steps of a claim of up to `count` attempts."""
    record_poll(queue, "", f"{group}/{name}")
    record_worker(queue, group, name, clock.now())
    wait_ms = round(CLAIM_WAIT_SECONDS * 1000)
    return _claim_steps(LongPoll(standalone_queue(queue), wait_ms, count, client), queue, group, name)


def _claim_steps(poll: LongPoll, queue: str, group: str, name: str) -> WaitSteps[list[ClaimedTask]]:
    ids: list[str] = []

    def take() -> list[ClaimedTask]:
        claimed = _claim_now(queue, group, name, poll.count)
        ids.extend(each.attempt.id for each in claimed)
        return claimed

    with releasing_undelivered(ids, f"{group}/{name}"):
        return (yield from begin_poll(poll, take))


def render_delivered(render: Callable[[list[ClaimedTask]], Rendered]) -> Callable[[list[ClaimedTask]], Rendered]:
    """Return the function that renders the reply to a claim, and releases the attempts if that raises an exception."""

    def render_or_release(claimed: list[ClaimedTask]) -> Rendered:
        worker = claimed[0].attempt.worker if claimed else ""
        with releasing_undelivered([each.attempt.id for each in claimed], worker):
            return render(claimed)

    return render_or_release


@metrics.CLAIM_SECONDS.of
def _claim_now(queue: str, group: str, name: str, count: int) -> list[ClaimedTask]:
    release_again()
    now = clock.now()
    if not standalone_claims.is_any_waiting(queue, group, name, now):
        return []
    ids: list[str] = []
    with releasing_undelivered(ids, f"{group}/{name}"):
        with transaction.atomic():
            ids += standalone_claims.claim_attempts(queue, group, name, now, count)
            claimed = _load_and_publish(ids, now) if ids else []
        record_claims(each.attempt for each in claimed)
        return claimed


def claim_one(task_id: str, number: int, group: str, name: str) -> ClaimedTask:
    """Claim one attempt by its number. A repeated claim of the same worker returns the attempt again.

    Raises:
        NotFound: when there is no such task or attempt.
        Conflict: when the worker is quarantined, the deadline has passed, or the attempt is not pending.
    """
    worker, now = f"{group}/{name}", clock.now()
    standalone = standalone_tasks.load_task(task_id)
    record_worker(standalone.queue, group, name, now)
    attempt = reports.find_attempt(standalone, number)
    if is_quarantined(standalone.queue, group, name, now):
        raise Conflict(f"Worker {worker} is quarantined.")
    if standalone.is_late(now):
        raise Conflict(f"The deadline of task {task_id} has passed.")
    if attempt.status == LEASED and attempt.worker == worker:
        return ClaimedTask(standalone, attempt, standalone_tasks.load_definition(task_id))
    with transaction.atomic():
        if attempt.status != PENDING or not standalone_claims.claim_attempt(attempt.id, worker, now):
            raise Conflict(f"Run {number} of task {task_id} cannot be claimed: it is not pending.")
        [claimed] = _load_and_publish([attempt.id], now)
    record_claims([claimed.attempt])
    return claimed


def _load_and_publish(ids: Sequence[str], now: int) -> list[ClaimedTask]:
    """Load the claimed attempts in this order, and save their Pulse messages."""
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
