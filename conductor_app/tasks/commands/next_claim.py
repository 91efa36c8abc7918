"""Claim the next task of a queue together with the report of a task of that queue: one request and one commit a task.

The claim is the last statement of the transaction that stores the report. It claims what a poll would claim, and
nothing if the next task has a limit, a fairness key or a published start: a transaction of its own claims those.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from ...core.effects import Effect
from ...core.snapshot import Run
from ...core.step_types.base import task_type_of
from ...db.database import transaction
from ...db.fields import strip_nul
from ...notifications import WAITERS, WaitingClient, WaitSteps
from ...runs.models import Attempt
from ...telemetry.metrics import CLAIM_SECONDS
from ...utils import clock
from .. import store
from ..shares import is_shared
from ..store import ClaimedAttempt
from .claims import LongPoll, claim_steps, complete_claim, releasing_undelivered, retry_releases
from .pollers import record_poll

WAIT_MS = 100
"""The wait for a task after a report, in milliseconds: that of a poll without a timeout."""


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
