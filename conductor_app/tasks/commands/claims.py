"""Claim attempts for workers, in long polls that wait for work without a database connection.

The report of a task can claim the next one of its queue: one request and one commit a task. This claim is the last
statement of the transaction that stores the report. It claims what a poll would claim, and nothing if the next task has
a limit, a fairness key or a published start: a transaction of its own claims those.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from random import random
from time import monotonic, perf_counter
from typing import Any, TypeVar

from ... import notifications
from ...access.encryption import decrypt_masked, masked_texts
from ...core import commands
from ...core.decide import Report
from ...core.effects import Effect
from ...core.errors import Conflict, NotFound, PayloadMissing, RequestRefused
from ...core.masking import masked_paths
from ...core.snapshot import Run
from ...core.states import LEASED
from ...core.step_types.base import task_type_of
from ...db.database import transaction
from ...db.fields import strip_nul
from ...db.statements import execute_in_transaction
from ...db.transient_errors import FaultTolerance
from ...notifications import LOCAL_CALLER, WAITERS, PendingWait, Waiter, WaitingClient, WaitSteps, wait_in_thread
from ...payloads import commands as payload_storage
from ...runs.commands.change import RunCommand, change_run
from ...runs.commands.messages import deliver_after_commit
from ...runs.models import Attempt
from ...telemetry import metrics
from ...telemetry.metrics import CLAIM_SECONDS
from ...utils import clock, fault_points, process_state
from ...utils.process_state import Slot
from .. import store, throughput
from ..shares import is_shared
from ..store import ClaimedAttempt
from .pollers import LOOKUPS, record_poll, release_connection
from .reports import report_task

log = logging.getLogger(__name__)

STORAGE_SECONDS = 30
"""Delay of an attempt whose input is in a storage that cannot be reached."""
NOT_DELIVERED = "The reply to the worker failed."
SHORT_WAIT_MS = 200
"""The maximum wait of a poll whose queue is not looked up in the meantime. It claims again at its end instead."""
MOST_EARLY = 0.1
"""The share of its wait by which a poll may end early."""
Taken = TypeVar("Taken")
Rendered = TypeVar("Rendered")
WAIT_MS = 100
"""The wait for a task after a report, in milliseconds: that of a poll without a timeout."""


@dataclass(frozen=True, slots=True)
class LongPoll:
    """A poll of a queue, for up to `count` attempts, that waits up to `wait_ms` milliseconds for the first.

    `empty_at`: the count of announcements before a claim that has found nothing. None if there was no such claim.
    """

    queue: str
    wait_ms: int
    count: int = 1
    client: WaitingClient = LOCAL_CALLER
    empty_at: int | None = None


def claim_tasks(
    task_type: str, *, worker: str = "", domain: str = "", count: int = 1, wait_ms: int = 100
) -> list[ClaimedAttempt]:
    """Claim up to `count` attempts of a type for a worker, waiting up to `wait_ms` milliseconds for the first."""
    return wait_in_thread(begin_claim(task_type, worker=worker, domain=domain, count=count, wait_ms=wait_ms))


def begin_claim(
    task_type: str,
    *,
    worker: str = "",
    domain: str = "",
    count: int = 1,
    wait_ms: int = 100,
    client: WaitingClient = LOCAL_CALLER,
) -> WaitSteps[list[ClaimedAttempt]]:
    """Return the steps of a claim of up to `count` attempts, which waits up to `wait_ms` milliseconds for the first."""
    queue = f"{domain}:{task_type}" if domain else task_type
    worker = strip_nul(worker)[:255]
    record_poll(task_type, domain, worker)
    return claim_steps(LongPoll(queue, wait_ms, count, client), worker)


def claim_steps(poll: LongPoll, worker: str) -> WaitSteps[list[ClaimedAttempt]]:
    ids: list[str] = []

    def take() -> list[ClaimedAttempt]:
        taken = claim_now(poll.queue, worker, poll.count)
        ids.extend(attempt.id for attempt in taken)
        return taken

    with releasing_undelivered(ids, worker):
        return (yield from begin_poll(poll, take))


@metrics.CLAIM_SECONDS.of
def claim_now(queue: str, worker: str, count: int) -> list[ClaimedAttempt]:
    """Claim up to `count` attempts that the queue has now."""
    retry_releases()
    now = clock.now()
    ids, attempts, is_limited = store.claim_unlimited(queue, worker, now, count)
    if is_limited:
        claim, was_shared = partial(_claim_with_limits, queue, worker, count, now), is_shared(queue)
        ids, attempts = execute_in_transaction(claim), None
        if not (ids or was_shared) and is_shared(queue):
            ids = execute_in_transaction(claim)
    if not ids:
        return []
    with releasing_undelivered(ids, worker):
        return complete_claim(store.load_claimed(ids) if attempts is None else attempts)


def complete_claim(attempts: Iterable[ClaimedAttempt]) -> list[ClaimedAttempt]:
    """Return attempts that were just claimed, with their payloads, and count them. Some may have to be postponed."""
    taken = list(_with_inputs(attempts))
    throughput.record_claims(taken)
    fault_points.reach("claimed")
    return taken


def _claim_with_limits(queue: str, worker: str, count: int, now: int) -> list[str]:
    """Claim attempts that have limits or fairness keys, or whose start is published, in a transaction."""
    ids, published = store.claim_limited(queue, worker, now, count)
    if published:
        transaction.on_commit(partial(deliver_after_commit, store.write_start_messages(published, now)))
    return ids


def _with_inputs(attempts: Iterable[ClaimedAttempt]) -> Iterator[ClaimedAttempt]:
    """Yield the attempts with inputs from blob storage loaded and masked values decrypted.

    The server loads the inputs because only one SDK can fetch them itself.
    """
    for attempt in attempts:
        if attempt.has_masked_values:
            attempt.masked, attempt.masked_paths = masked_texts(attempt.input), masked_paths(attempt.input)
            attempt.input, attempt.output = decrypt_masked(attempt.input), decrypt_masked(attempt.output)
        if attempt.input_path:
            try:
                stored = payload_storage.load_encrypted_payload(attempt.input_path)
            except RequestRefused as refused:
                _postpone_claim(attempt, refused)
                continue
            attempt.masked_paths = masked_paths(stored)
            attempt.masked = masked_texts(stored) if attempt.masked_paths else ()
            attempt.input = decrypt_masked(stored) if attempt.masked_paths else stored
        yield attempt


def _postpone_claim(attempt: ClaimedAttempt, why: RequestRefused) -> None:
    """Fail an attempt whose input is missing, or release it with a delay if the storage cannot be reached."""
    facts = {"attempt_id": attempt.id, "path": attempt.input_path}
    log.warning("input_not_read", extra={**facts, "why": why.message})
    if isinstance(why, PayloadMissing):
        report = Report("FAILED_FOR_GOOD", reason=f"Its input cannot be read: {why.message}", merges=True)
    else:
        report = Report("IN_PROGRESS", callback_seconds=STORAGE_SECONDS, merges=True, is_kept=False)
    try:
        report_task(attempt.run_id, attempt.id, report, "engine")
    except RequestRefused:
        # The lease expires, and workers can claim the attempt again.
        log.exception("input_not_read", extra=facts)


Release = Callable[[Attempt], None]
"""Returns a claimed attempt to its queue. Refusals, such as Conflict, are ignored."""


def release_attempt(attempt: Attempt) -> None:
    """Return a claimed attempt of a run to its queue."""
    command = commands.release_lease(attempt.pk)
    change_run(RunCommand(attempt.run_id or "", command, "engine", NOT_DELIVERED, attempts=[attempt.pk]))


@contextmanager
def releasing_undelivered(ids: Collection[str], worker: str, release: Release = release_attempt) -> Iterator[None]:
    """Release claimed attempts if the block raises an exception, because their worker does not receive them.

    Otherwise no worker would have them until their leases expire.
    """
    try:
        yield
    except BaseException:
        if ids:
            _release_claims(frozenset(ids), worker, release)
        raise


_unreleased: Slot[deque[tuple[frozenset[str], str, Release]]] = process_state.slot(lambda: deque(maxlen=1_000))
"""Claims that could not be released either: ids, worker and `release`. The next claim of this process tries again."""


def _release_claims(ids: frozenset[str], worker: str, release: Release) -> None:
    held = Attempt.objects.filter(pk__in=ids, status=LEASED, worker=worker).only("run_id", "task_id", "number")
    try:
        for attempt in FaultTolerance().repeat(lambda: [*held]):
            with suppress(NotFound, Conflict):
                release(attempt)
    except Exception:
        log.exception("claim_not_released", extra={"attempts": sorted(ids)[:50], "worker": worker})
        _unreleased.value.append((ids, worker, release))


def retry_releases() -> None:
    """Release the claims of this process that could not be released before."""
    unreleased = _unreleased.value
    for _ in range(len(unreleased)):
        with suppress(IndexError):
            _release_claims(*unreleased.popleft())


def render_delivered(render: Callable[[list[ClaimedAttempt]], Rendered]) -> Callable[[list[ClaimedAttempt]], Rendered]:
    """Return the function that renders the reply to a claim, and releases the attempts if that raises an exception."""

    def render_or_release(attempts: list[ClaimedAttempt]) -> Rendered:
        ids, worker = [attempt.id for attempt in attempts], attempts[0].worker if attempts else ""
        with releasing_undelivered(ids, worker):
            return render(attempts)

    return render_or_release


def begin_poll(poll: LongPoll, take: Callable[[], list[Taken]]) -> WaitSteps[list[Taken]]:
    """Return what `take` claims from the queue, at once or when the poll is woken.

    Returns earlier if too many requests are waiting. Nothing is claimed for a client that has disconnected: the attempt
    would be blocked until its lease expires.
    """
    if poll.client.has_left():
        return []
    seconds = notifications.limit_wait(poll.client, poll.wait_ms / 1000)
    if seconds <= 0:
        return [] if _was_just_empty(poll) else take()
    # Polls that begin together, such as after a restart, would end and begin together for a long time.
    ends_at = monotonic() + seconds * (1 - random() * MOST_EARLY)
    with notifications.subscribe(poll.queue, most=poll.count, client=poll.client) as waiter:
        taken = [] if _is_known_to_be_empty(poll) else take()
        waiter.finish_claim(len(taken))
        while not taken and (yield from _wait(poll, waiter, ends_at)):
            taken = take()
            if waiter.finish_claim(len(taken)):
                LOOKUPS.value.repeat(poll.queue)
        return taken


def _is_known_to_be_empty(poll: LongPoll) -> bool:
    """Return True if a claim has just found nothing, or a lookup for other polls, and this poll waits for the next."""
    is_looked_up = poll.wait_ms > SHORT_WAIT_MS and notifications.WAITERS.value.is_empty(poll.queue, monotonic())
    return is_looked_up or _was_just_empty(poll)


def _was_just_empty(poll: LongPoll) -> bool:
    """Return True if a claim has found nothing, and no attempt was announced since."""
    return poll.empty_at is not None and poll.empty_at == notifications.WAITERS.value.count_announced(poll.queue)


def _wait(poll: LongPoll, waiter: Waiter, ends_at: float) -> Generator[PendingWait, bool, bool]:
    """Wait for a notification without a database connection. Returns True if the poll must claim again."""
    left, is_short = ends_at - monotonic(), poll.wait_ms <= SHORT_WAIT_MS
    if left <= 0 or notifications.is_closing():
        return False
    if not is_short:
        LOOKUPS.value.watch(poll.queue)
    release_connection()
    with metrics.gauge_waiting():
        is_woken = yield PendingWait(waiter, left)
    # A poll that does not claim passes its notification on when it unsubscribes.
    return (is_woken or is_short) and not (poll.client.has_left() or notifications.is_closing())


class ClaimQuery:
    """The claim of one task for a worker at the end of a transaction, at a time in epoch milliseconds.

    `ids`: gets the id of the claimed attempt after the commit. `rows`: None before. `seconds`: the time of the claim
    and the commit. `announced`: the count of announcements of the queue before the claim.
    """

    def __init__(self, queue: str, worker: str, now: int, ids: list[str]) -> None:
        self._queue, self._worker, self._now, self._ids = queue, worker, now, ids
        self._began = perf_counter()
        self.rows: Sequence[tuple[Any, ...]] | None = None
        self.seconds = 0.0
        self.announced = WAITERS.value.count_announced(queue)

    @property
    def statement(self) -> tuple[str, Sequence[Any]]:
        """Return the claim as one statement, for PostgreSQL."""
        return store.claim_statement(self._queue, self._worker, self._now, 1)

    def fetch(self) -> list[tuple[Any, ...]]:
        """Claim in the current transaction, and return the rows for `receive`."""
        return store.fetch_claim(self._queue, self._worker, self._now, 1)

    def receive(self, rows: Sequence[tuple[Any, ...]]) -> Sequence[str]:
        """Store what was claimed. It is called after the commit. Returns the id of the claimed attempt."""
        self.rows, self._ids[:] = rows, [row[0] for row in rows if row[0] is not None]
        self.seconds = perf_counter() - self._began
        return self._ids


class NextClaim:
    """The claim of one task after the report of an attempt, from the queue of that attempt.

    `may_claim`: returns True if the worker may claim tasks of this queue and domain. `choose`: returns another queue
    with its domain, from the effects of the report. `taken`: what was claimed, after the commit.
    """

    def __init__(
        self,
        attempt_id: str,
        worker: str,
        may_claim: Callable[[str, str], bool],
        client: WaitingClient,
        choose: Callable[[Sequence[Effect]], tuple[str, str]] | None = None,
    ) -> None:
        self._attempt_id, self._worker = attempt_id, strip_nul(worker)[:255]
        self._may_claim, self._client, self._choose = may_claim, client, choose
        self._source: tuple[str, str] | None = None
        self._ids: list[str] = []
        self._query: ClaimQuery | None = None
        self.taken: list[ClaimedAttempt] = []

    def final_query(self, run: Run, effects: Sequence[Effect], now: int) -> ClaimQuery | None:
        """Return the claim for the transaction of the report, or None if the worker must get no task.

        `run`: as loaded, with the reported attempt.
        """
        self._query = None
        if (task := run.task_of_attempt(self._attempt_id)) is None:
            return None
        self._source = self._choose(effects) if self._choose else (task.attempt.queue, task.attempt.domain)
        return self._begin_query(*self._source, now)

    def _begin_query(self, queue: str, domain: str, now: int) -> ClaimQuery | None:
        # An attempt that is given to a client that has disconnected is blocked until its lease expires.
        # A queue with fairness keys needs a transaction of its own.
        is_free = bool(queue) and not is_shared(queue)
        if is_free and self._may_claim(queue, domain) and not self._client.has_left():
            self._query = ClaimQuery(queue, self._worker, now, self._ids)
        return self._query

    @contextmanager
    def within_transaction(self) -> Iterator[None]:
        """Claim at the end of a block that reports with `final_query`, in the transaction that the block is all of.

        After the commit, `taken` has the task.
        """
        retry_releases()
        rows: list[tuple[Any, ...]] = []
        with transaction.atomic(durable=True):
            yield
            query = self._begin_query(*self._source, clock.now()) if self._source else None
            if query is not None:
                rows = query.fetch()
        if query is not None:
            query.receive(rows)
            with releasing_undelivered(self._ids, self._worker):
                self.taken = self._take_claimed()

    def report(self, report: Callable[[], bool]) -> bool:
        """Report, in a transaction that executes `final_query`, and return what `report` returns."""
        retry_releases()
        with releasing_undelivered(self._ids, self._worker):
            is_over = report()
            self.taken = self._take_claimed()
        return is_over

    def begin_after(self, report: Callable[[], bool]) -> WaitSteps[list[ClaimedAttempt]]:
        """Return the steps that report, and that wait for a task if the transaction of the report has claimed none.

        `report`: returns True if the task has ended. Its transaction executes `final_query`.
        """
        is_over = self.report(report)
        if self.taken:
            return self.taken
        queue, domain = self._source or self._load_source()
        if not (is_over and queue and self._may_claim(queue, domain)):
            return []
        record_poll(task_type_of(queue, domain), domain, self._worker)
        # A row without an attempt is a task that needs a claim of its own, because it has a limit.
        has_found_none = self._query is not None and self._query.rows is not None and not self._query.rows
        announced = self._query.announced if self._query is not None and has_found_none else None
        poll = LongPoll(queue, WAIT_MS, client=self._client, empty_at=announced)
        return (yield from claim_steps(poll, self._worker))

    def _take_claimed(self) -> list[ClaimedAttempt]:
        """Return the task that the transaction of the report has claimed."""
        if not (self._query and self._query.rows and self._source and self._ids):
            return []
        CLAIM_SECONDS.observe(self._query.seconds, has_result=True)
        queue, domain = self._source
        record_poll(task_type_of(queue, domain), domain, self._worker)
        return complete_claim(store.parse_claim(self._query.rows))

    def _load_source(self) -> tuple[str, str]:
        """Return the queue and the domain of an attempt that had ended before the report."""
        attempts = Attempt.objects.of_runs().filter(pk=self._attempt_id)
        return attempts.values_list("queue", "domain").first() or ("", "")
