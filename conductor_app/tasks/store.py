"""Assign attempts that pass every gate to workers. A claim skips rows that other claims have locked."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from django.db import connection

from ..models import Message
from ..models.claimed_attempts import ClaimedAttempt
from ..models.gates import COUNT_LEASED, COUNT_STARTS, GateFacts, free_capacity, open_condition
from ..models.named_statements import NamedStatement, load_statements
from .claimed_attempts import ATTEMPT_COLUMNS, CLAIMED_COLUMNS, parse_claimed
from .statements import execute, fetch, serialize


class Candidate(NamedTuple):
    """A due attempt with its limits: those of the current task definition, or its own if there is none."""

    id: str
    name: str
    concurrent_limit: int
    rate_count: int
    rate_seconds: int
    publishes_start: bool

    @property
    def is_limited(self) -> bool:
        return self.concurrent_limit > 0 or (self.rate_count > 0 and self.rate_seconds > 0)

    @property
    def is_plain(self) -> bool:
        """Return True if one statement claims the attempt: it has no limit, and its start is not published."""
        return not (self.is_limited or self.publishes_start)


CLAIMS_SQL = load_statements(
    "claims",
    gates=open_condition(),
    attempt_columns=", ".join(ATTEMPT_COLUMNS),
    claimed_columns=CLAIMED_COLUMNS,
)


def find_candidates(queue: str, worker: str, now: int, count: int, full: Sequence[str] = ()) -> list[Candidate]:
    """Return the due attempts of the queue in dispatch order, without locks and without the names in `full`."""
    statement = CLAIMS_SQL["find_candidates_except" if full else "find_candidates"]
    rows = fetch(*statement.bind(queue=queue, worker=worker, now=now, count=count, full=full))
    return [Candidate(*row) for row in rows]


class Claim(NamedTuple):
    """The claimed attempts: their ids, and the attempts with their tasks and runs, if the claim has loaded them.

    `is_limited`: nothing was claimed because of a limit or a published start.
    """

    ids: list[str]
    loaded: list[ClaimedAttempt] | None = None
    is_limited: bool = False


def claim_unlimited(queue: str, worker: str, now: int, count: int) -> Claim:
    """Claim attempts if the next ones of the queue have no limit and their starts are not published.

    On PostgreSQL it takes one statement, which also loads them.
    """
    if connection.vendor == "postgresql":
        return _claim_and_load(queue, worker, now, count)
    found = find_candidates(queue, worker, now, count)
    if not all(candidate.is_plain for candidate in found):
        return Claim([], is_limited=True)
    if not found:
        return Claim([])
    names = sorted({candidate.name for candidate in found})
    statement = CLAIMS_SQL["claim_plain"]
    return Claim(mark_claimed(statement, queue=queue, worker=worker, now=now, count=count, names=names))


def _claim_and_load(queue: str, worker: str, now: int, count: int) -> Claim:
    rows = fetch(*CLAIMS_SQL["claim_and_load"].bind(queue=queue, worker=worker, now=now, count=count))
    claimed = [row for row in rows if row[0] is not None]
    attempts = [parse_claimed(row) for row in claimed]
    return Claim([attempt.id for attempt in attempts], attempts, is_limited=len(claimed) < len(rows))


def claim_limited(queue: str, worker: str, now: int, count: int) -> tuple[list[str], list[str]]:
    """Claim attempts with and without limits, in a transaction.

    For each name with a limit, one transaction claims at a time, so that the limit is not exceeded. Returns the ids,
    and those among them whose start is published.
    """
    claimed: list[str] = []
    published: list[str] = []
    full: list[str] = []
    while len(claimed) < count:
        candidates = _lock_candidates(queue, worker, now, count - len(claimed), [*full])
        if not candidates:
            break
        chosen, filled = _apply_limits(candidates, now)
        full += filled
        _store_rate_limits(candidates, chosen)
        if chosen:
            claimed += mark_claimed(CLAIMS_SQL["claim_locked"], ids=chosen, worker=worker, now=now)
            published += [
                candidate.id for candidate in candidates if candidate.publishes_start and candidate.id in claimed
            ]
        if not filled:
            break
    return claimed, published


def write_start_messages(ids: Sequence[str], now: int) -> tuple[int, ...]:
    """Write a message to the run of each attempt whose start is published, at its first claim.

    Returns the messages' ids.
    """
    rows = fetch(*CLAIMS_SQL["find_published_starts"].bind(ids=ids))
    messages = [
        Message(to=run_id, subject="started", facts={"attempt": id}, sent_at=now, due_at=now) for id, run_id in rows
    ]
    return tuple(message.pk for message in Message.objects.bulk_create(messages))


def _store_rate_limits(candidates: list[Candidate], chosen: list[str]) -> None:
    """Store the rate limit of attempts whose task definition got it after their run had started.

    The gate counts only the starts of attempts with a rate limit.
    """
    for candidate in candidates:
        if candidate.id in chosen and candidate.rate_count > 0:
            execute(*CLAIMS_SQL["store_rate_limit"].bind(**candidate._asdict()))


def _lock_candidates(queue: str, worker: str, now: int, count: int, full: list[str]) -> list[Candidate]:
    statement = CLAIMS_SQL["lock_candidates_except" if full else "lock_candidates"]
    rows = fetch(*statement.bind(queue=queue, worker=worker, now=now, count=count, full=full))
    return [Candidate(*row) for row in rows]


def _apply_limits(candidates: list[Candidate], now: int) -> tuple[list[str], list[str]]:
    """Return the ids that the limits allow, and the names that have reached their limits with them."""
    chosen, full = [], []
    ordered = sorted(candidates, key=lambda candidate: candidate.name)
    for name, group in groupby(ordered, key=lambda candidate: candidate.name):
        same = list(group)
        free = _remaining_capacity(same[0], now)
        chosen += [candidate.id for candidate in same][:free]
        if free is not None and free <= len(same):
            full.append(name)
    order = {candidate.id: place for place, candidate in enumerate(candidates)}
    return sorted(chosen, key=order.__getitem__), full


def _remaining_capacity(limits: Candidate, now: int) -> int | None:
    """Return the number of attempts of this name that can be claimed now, or None for no limit."""
    if not limits.is_limited:
        return None
    serialize(f"limit:{limits.name}")
    return free_capacity(load_limit_facts(limits, now))


def load_limit_facts(limits: Candidate, now: int) -> GateFacts:
    """Return the current counts for the gates with limits."""
    leased = starts = 0
    if limits.concurrent_limit > 0:
        [(leased,)] = fetch(*COUNT_LEASED.bind(name=limits.name))
    if limits.rate_count > 0 and limits.rate_seconds > 0:
        [(starts,)] = fetch(*COUNT_STARTS.bind(name=limits.name, since=now - limits.rate_seconds * 1000))
    return GateFacts(
        now=now,
        visible_at=now,
        concurrent_limit=limits.concurrent_limit,
        leased=leased,
        rate_count=limits.rate_count,
        rate_seconds=limits.rate_seconds,
        starts=starts,
    )


def mark_claimed(statement: NamedStatement, **values: Any) -> list[str]:
    """Execute a statement that claims attempts. Returns the ids in dispatch order, which RETURNING does not keep."""
    return [id for *_, id in sorted(fetch(*statement.bind(**values)))]


def load_claimed(ids: Sequence[str]) -> list[ClaimedAttempt]:
    """Return the attempts in the order of the ids, with their tasks and runs."""
    rows = fetch(*CLAIMS_SQL["load_claimed"].bind(ids=ids))
    by_id = {attempt.id: attempt for attempt in map(parse_claimed, rows)}
    return [by_id[id] for id in ids if id in by_id]
