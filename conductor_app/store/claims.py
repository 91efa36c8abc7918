"""Assign attempts that pass every gate to workers. A claim skips rows that other claims have locked."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from django.db import connection

from ..models import Message
from ..models.claimed_attempts import ClaimedAttempt
from ..models.gates import CONCURRENCY, RATE, GateFacts, free_capacity, open_condition, positional, usage_query
from .claimed_attempts import ATTEMPT_COLUMNS, CLAIMED_COLUMNS, parse_claimed
from .statements import execute, fetch, lock_clause, placeholders, serialize


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


IS_CLAIMABLE, CLAIMABLE_PARAMETERS = positional(
    f"a.queue = :queue AND a.status = 'PENDING' AND NOT (a.queue = '') AND {open_condition()} "
    "AND NOT EXISTS (SELECT 1 FROM conductor_workerhold w WHERE w.worker = :worker)"
)
"""The condition that an attempt passes the gates without a limit, and that the worker is not drained."""
BELONGS_TO_RUN = "a.run_id IS NOT NULL"
"""A queue of standalone tasks may have the name of a task type. The workers of one must not get attempts of the other.
"""
CLAIM_ORDER = "ORDER BY a.priority DESC, a.visible_at, a.id LIMIT %s"
SELECT_CANDIDATES = (
    "SELECT a.id, a.name, COALESCE(d.concurrent_limit, a.concurrent_limit), COALESCE(d.rate_count, a.rate_count), "
    "COALESCE(d.rate_seconds, a.rate_seconds), a.publishes_start FROM conductor_attempt a "
    "LEFT JOIN conductor_taskdefinition d ON d.name = a.name WHERE "
)
CLAIM_ATTEMPTS = (
    "UPDATE conductor_attempt SET status = 'LEASED', worker = %s, poll_count = poll_count + 1, callback_ms = 0, "
    "claimed_at = %s, updated_at = %s, started_at = COALESCE(started_at, %s), "
    "lease_ends_at = CASE WHEN lease_ms > 0 THEN %s + lease_ms END, "
    "due_at = (SELECT MIN(column1) FROM (VALUES (CASE WHEN lease_ms > 0 THEN %s + lease_ms END), "
    "(CASE WHEN timeout_ms > 0 THEN COALESCE(started_at, %s) + delay_ms + timeout_ms END), (total_ends_at)) AS clocks) "
)


def claimable_params(queue: str, worker: str, now: int) -> list[Any]:
    """Return the parameters of IS_CLAIMABLE."""
    values = {"queue": queue, "worker": worker, "now": now}
    return [values[name] for name in CLAIMABLE_PARAMETERS]


def find_candidates(queue: str, worker: str, now: int, count: int, full: Sequence[str] = ()) -> list[Candidate]:
    """Return the due attempts of the queue in dispatch order, without locks and without the names in `full`."""
    return [Candidate(*row) for row in fetch(*_candidates_query(queue, worker, now, count, full))]


def _candidates_query(queue: str, worker: str, now: int, count: int, full: Sequence[str]) -> tuple[str, list[Any]]:
    but = f" AND a.name NOT IN ({placeholders(full)})" if full else ""
    sql = f"{SELECT_CANDIDATES}{IS_CLAIMABLE} AND {BELONGS_TO_RUN}{but} {CLAIM_ORDER}"
    return sql, [*claimable_params(queue, worker, now), *full, count]


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
    names = sorted({candidate.name for candidate in found})
    return Claim(_claim_plain(queue, worker, now, count, names) if found else [])


def _claim_plain(queue: str, worker: str, now: int, count: int, names: Sequence[str]) -> list[str]:
    chosen = (
        f"SELECT a.id FROM conductor_attempt a WHERE {IS_CLAIMABLE} AND {BELONGS_TO_RUN} "
        f"AND a.name IN ({placeholders(names)}) AND NOT a.publishes_start {CLAIM_ORDER}"
    )
    return mark_claimed(chosen, [*claimable_params(queue, worker, now), *names, count], worker, now)


CLAIM_AND_LOAD = (
    "WITH candidates AS MATERIALIZED (SELECT a.id, NOT (a.publishes_start "
    "OR COALESCE(d.concurrent_limit, a.concurrent_limit) > 0 OR (COALESCE(d.rate_count, a.rate_count) > 0 "
    "AND COALESCE(d.rate_seconds, a.rate_seconds) > 0)) AS is_plain "
    "FROM conductor_attempt a LEFT JOIN conductor_taskdefinition d ON d.name = a.name "
    f"WHERE {IS_CLAIMABLE} AND {BELONGS_TO_RUN} {CLAIM_ORDER} FOR UPDATE OF a SKIP LOCKED), "
    f"a AS ({CLAIM_ATTEMPTS} WHERE id IN (SELECT id FROM candidates) AND status = 'PENDING' "
    "AND NOT EXISTS (SELECT 1 FROM candidates WHERE NOT is_plain) "
    f"RETURNING {', '.join(ATTEMPT_COLUMNS)}, priority, visible_at) "
    f"SELECT {CLAIMED_COLUMNS} FROM candidates c LEFT JOIN a ON a.id = c.id "
    "LEFT JOIN conductor_task t ON t.id = a.task_id LEFT JOIN conductor_run r ON r.id = a.run_id "
    "ORDER BY a.priority DESC, a.visible_at, a.id"
)
"""Claims in one statement, on PostgreSQL. A row without an attempt is a candidate that was not claimed."""


def _claim_and_load(queue: str, worker: str, now: int, count: int) -> Claim:
    times = [worker, now, now, now, now, now, now]
    rows = fetch(CLAIM_AND_LOAD, [*claimable_params(queue, worker, now), count, *times])
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
            claimed += mark_claimed(
                f"SELECT a.id FROM conductor_attempt a WHERE a.id IN ({placeholders(chosen)})", chosen, worker, now
            )
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
    rows = fetch(
        f"SELECT id, run_id FROM conductor_attempt WHERE id IN ({placeholders(ids)}) AND publishes_start "
        "AND poll_count = 1 ORDER BY id",
        ids,
    )
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
            execute(
                "UPDATE conductor_attempt SET rate_count = %s, rate_seconds = %s WHERE id = %s AND rate_count = 0",
                [candidate.rate_count, candidate.rate_seconds, candidate.id],
            )


def _lock_candidates(queue: str, worker: str, now: int, count: int, full: list[str]) -> list[Candidate]:
    sql, params = _candidates_query(queue, worker, now, count, full)
    return [Candidate(*row) for row in fetch(sql + lock_clause("a", skip_locked=True), params)]


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
        [(leased,)] = fetch(*usage_query(CONCURRENCY, limits.name))
    if limits.rate_count > 0 and limits.rate_seconds > 0:
        [(starts,)] = fetch(*usage_query(RATE, limits.name, since=now - limits.rate_seconds * 1000))
    return GateFacts(
        now=now,
        visible_at=now,
        concurrent_limit=limits.concurrent_limit,
        leased=leased,
        rate_count=limits.rate_count,
        rate_seconds=limits.rate_seconds,
        starts=starts,
    )


def mark_claimed(chosen: str, params: Sequence[Any], worker: str, now: int) -> list[str]:
    """Claim the chosen attempts. Returns the ids in dispatch order, which RETURNING does not keep."""
    # MATERIALIZED: otherwise PostgreSQL may evaluate the subquery once per row and claim too many attempts.
    claim = (
        f"{CLAIM_ATTEMPTS} WHERE id IN (SELECT id FROM chosen) AND status = 'PENDING' "
        "RETURNING -priority, visible_at, id"
    )
    sql = f"WITH chosen AS MATERIALIZED ({chosen}) {claim}"
    return [id for *_, id in sorted(fetch(sql, [*params, worker, now, now, now, now, now, now]))]
