"""Statements on attempts: claims, lookups for waiting polls, log lines and counts.

A claim assigns attempts that pass every gate to a worker, and skips rows that other claims have locked. Lookups take no
locks.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import groupby, takewhile
from typing import Any, NamedTuple

from ..core.masking import MARK
from ..core.primitives import JsonValue
from ..core.trace_context import traceparent_below
from ..db.database import connection
from ..db.fields import dumps, loads, loads_encrypted, strip_nul
from ..db.statements import (
    MAX_BATCH_ROWS,
    NamedStatement,
    execute,
    execute_in_transaction,
    fetch,
    load_statements,
    serialize,
)
from ..runs.models import Attempt, Message, TaskLog
from . import shares
from .gates import COUNT_LEASED, COUNT_STARTS, GateFacts, free_capacity, open_condition
from .shares import Candidate


class ClaimedAttemptTask(NamedTuple):
    """The task of a claimed attempt. `step_state_text` is JSON text."""

    ref: str
    iteration_path: str
    type: str
    status: str
    attempt_id: str
    iteration: int
    branch_head: str
    step_state_text: str

    @property
    def step_state(self) -> dict[str, Any]:
        """Return the step state. Masked values are `***`."""
        return loads(self.step_state_text) or {}

    def __str__(self) -> str:
        return "__".join([self.ref, *filter(None, self.iteration_path.split("."))])


class ClaimedAttemptRun(NamedTuple):
    """The run of a claimed attempt. `domains_text` is JSON text."""

    id: str
    name: str
    correlation_id: str
    priority: int
    resolved_definition_id: str
    version: int
    traceparent: str | None
    domains_text: str

    @property
    def domains(self) -> dict[str, str]:
        return loads(self.domains_text) or {}


@dataclass(slots=True)
class ClaimedAttempt:
    """An attempt that a worker has just claimed. Payloads are JSON texts, which most responses pass on unparsed.

    `masked`: the decrypted values of masked fields of its input, which must not appear in error messages.
    `masked_paths`: their paths in the input.
    """

    id: str
    task_id: str
    run_id: str
    number: int
    seq: int
    status: str
    name: str
    queue: str
    domain: str
    scheduled_at: int
    started_at: int | None
    updated_at: int
    ended_at: int | None
    ends_at: int
    lease_ms: int
    delay_ms: int
    callback_ms: int
    rate_count: int
    rate_seconds: int
    poll_count: int
    worker: str
    reason: str
    previous_id: str
    child_id: str
    input_path: str
    output_path: str
    input_text: str
    output_text: str
    task: ClaimedAttemptTask
    run: ClaimedAttemptRun
    masked: Iterable[str] = ()
    masked_paths: Iterable[tuple[str | int, ...]] = ()

    @property
    def input(self) -> Any:
        return loads_encrypted(self.input_text)

    @input.setter
    def input(self, value: JsonValue) -> None:
        self.input_text = dumps(value) or "null"

    @property
    def output(self) -> Any:
        return loads_encrypted(self.output_text)

    @output.setter
    def output(self, value: JsonValue) -> None:
        self.output_text = dumps(value) or "null"

    @property
    def traceparent(self) -> str | None:
        """Return the context for the work on the attempt, whose span is the parent, or None if the run has no trace."""
        return traceparent_below(self.run.traceparent, self.id)

    @property
    def has_masked_values(self) -> bool:
        """True if a payload has encrypted parts."""
        return MARK in self.input_text or MARK in self.output_text


def _columns(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.removesuffix("_text") for name in takewhile(lambda name: name != "task", names))


ATTEMPT_COLUMNS = _columns(field.name for field in fields(ClaimedAttempt))
TASK_COLUMNS, RUN_COLUMNS = _columns(ClaimedAttemptTask._fields), _columns(ClaimedAttemptRun._fields)
ATTEMPT_END, TASK_END = len(ATTEMPT_COLUMNS), len(ATTEMPT_COLUMNS) + len(TASK_COLUMNS)
RUN_END = TASK_END + len(RUN_COLUMNS)
CLAIMED_COLUMNS = ", ".join(
    f"{alias}.{column}"
    for alias, columns in (("a", ATTEMPT_COLUMNS), ("t", TASK_COLUMNS), ("r", RUN_COLUMNS))
    for column in columns
)
"""The columns that `parse_claimed` reads, of an attempt `a`, its task `t` and its run `r`. The first is not null."""


def parse_claimed(row: tuple[Any, ...]) -> ClaimedAttempt:
    """Return an attempt with its task and run from a row that begins with CLAIMED_COLUMNS."""
    task, run = ClaimedAttemptTask._make(row[ATTEMPT_END:TASK_END]), ClaimedAttemptRun._make(row[TASK_END:RUN_END])
    return ClaimedAttempt(*(*row[:ATTEMPT_END], task, run))


CLAIMS_SQL = load_statements(
    "tasks/claims",
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

    `is_limited`: nothing was claimed because of a limit, a fairness key or a published start.
    """

    ids: list[str]
    loaded: list[ClaimedAttempt] | None = None
    is_limited: bool = False


def claim_unlimited(queue: str, worker: str, now: int, count: int) -> Claim:
    """Claim attempts if the next ones of the queue have no limit, no fairness key and no published start.

    On PostgreSQL it takes one statement, which also loads them.
    """
    if shares.is_shared(queue):
        return Claim([], is_limited=True)
    if connection.vendor == "postgresql":
        rows = fetch(*claim_statement(queue, worker, now, count))
        attempts = parse_claim(rows)
        is_limited = len(attempts) < len(rows)
        if is_limited:
            shares.note_keys(queue, has_keys=any(has_key for *_, has_key in rows))
        return Claim([attempt.id for attempt in attempts], attempts, is_limited)
    found = find_candidates(queue, worker, now, count)
    if not all(candidate.is_plain for candidate in found):
        shares.note_keys(queue, has_keys=any(candidate.fairness_key for candidate in found))
        return Claim([], is_limited=True)
    if not found:
        return Claim([])
    names = sorted({candidate.name for candidate in found})
    statement = CLAIMS_SQL["claim_plain"]
    values = {"queue": queue, "worker": worker, "now": now, "count": count, "names": names}
    return Claim(execute_in_transaction(lambda: mark_claimed(statement, **values), is_one_statement=True))


def claim_statement(queue: str, worker: str, now: int, count: int) -> tuple[str, Sequence[Any]]:
    """Return the statement of `claim_unlimited` on PostgreSQL, whose rows `parse_claim` reads."""
    return CLAIMS_SQL["claim_and_load"].bind(queue=queue, worker=worker, now=now, count=count)


def parse_claim(rows: Iterable[tuple[Any, ...]]) -> list[ClaimedAttempt]:
    """Return the attempts that a claim has claimed and loaded. Rows without an attempt were not claimed."""
    return [parse_claimed(row) for row in rows if row[0] is not None]


def fetch_claim(queue: str, worker: str, now: int, count: int) -> list[tuple[Any, ...]]:
    """Claim attempts as `claim_unlimited` does, in a transaction. Returns rows for `parse_claim`."""
    if connection.vendor == "postgresql":
        return fetch(*claim_statement(queue, worker, now, count))
    claim = claim_unlimited(queue, worker, now, count)
    if claim.ids:
        return _fetch_claimed(claim.ids)
    return [(None,)] if claim.is_limited else []


def claim_limited(queue: str, worker: str, now: int, count: int) -> tuple[list[str], list[str]]:
    """Claim attempts with and without limits and fairness keys, in a transaction.

    For each name with a limit, one transaction claims at a time, so that the limit is not exceeded, and so for each
    queue with fairness keys. Claims no attempts with keys if the process did not know before that the queue has some.
    Returns the ids, and those among them whose start is published.
    """
    claimed: list[str] = []
    published: list[str] = []
    full: list[str] = []
    is_shared = shares.is_shared(queue)
    if is_shared:
        shares.serialize_claims(queue)
    # The first attempts of a queue with keys are not locked: they may have to wait for those of other keys.
    find = find_candidates if is_shared else _lock_candidates
    while len(claimed) < count:
        candidates = find(queue, worker, now, count - len(claimed), [*full])
        has_keys = any(candidate.fairness_key for candidate in candidates)
        if has_keys or not full:
            shares.note_keys(queue, has_keys=has_keys)
        if not candidates or (has_keys and not is_shared):
            # The lock of the keys comes before all others, so the next transaction claims attempts with keys.
            break
        if has_keys:
            candidates = shares.share_out(queue, candidates, now, full)
        chosen, filled = _apply_limits(candidates, now)
        full += filled
        _store_rate_limits(candidates, chosen)
        if chosen:
            marked = set(mark_claimed(CLAIMS_SQL["claim_locked"], ids=chosen, worker=worker, now=now))
            claimed += [id for id in chosen if id in marked]
            taken = [candidate for candidate in candidates if candidate.id in marked]
            published += [candidate.id for candidate in taken if candidate.publishes_start]
            if keyed := [candidate for candidate in taken if candidate.fairness_key]:
                shares.charge(queue, keyed, now)
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


def remove_fairness_key(attempt_id: str) -> None:
    """Remove the fairness key of a pending attempt, so that claims take it by its place in the queue alone."""
    Attempt.objects.pending().filter(pk=attempt_id).update(fairness_key="")


def load_claimed(ids: Sequence[str]) -> list[ClaimedAttempt]:
    """Return the attempts in the order of the ids, with their tasks and runs."""
    return parse_claim(_fetch_claimed(ids))


def _fetch_claimed(ids: Sequence[str]) -> list[tuple[Any, ...]]:
    rows = {row[0]: row for row in fetch(*CLAIMS_SQL["load_claimed"].bind(ids=ids))}
    return [rows[id] for id in ids if id in rows]


NO_WORKER = ""


def find_next_visible(queues: Collection[str]) -> dict[str, int]:
    """Return the time at which the next pending attempt of each queue becomes visible.

    Queues without pending attempts are omitted. Takes one statement.
    """
    return dict(fetch(*CLAIMS_SQL["find_next_visible"].bind(queues=dumps(sorted(queues)))))


def count_claimable(queue: str, now: int, most: int) -> int:
    """Return how many attempts of runs, at most `most`, the gates would let polls claim now."""
    full: dict[str, int] = {}
    while True:
        candidates = find_candidates(queue, NO_WORKER, now, most, list(full))
        found = Counter(candidate.name for candidate in candidates)
        filled = {}
        for limits in {candidate.name: candidate for candidate in candidates}.values():
            free = free_capacity(load_limit_facts(limits, now)) if limits.is_limited else None
            if free is not None and free < found[limits.name]:
                filled[limits.name] = free
        full |= filled
        if not filled or len(candidates) < most:
            claimable = sum(found[name] for name in found if name not in full) + sum(full.values())
            return min(claimable, most)


def count_claimable_standalone(queue: str, now: int, most: int) -> int:
    """Return how many attempts of standalone tasks, at most `most`, the gates would let workers claim now."""
    statement = CLAIMS_SQL["find_claimable_standalone"]
    return len(fetch(*statement.bind(queue=queue, worker=NO_WORKER, now=now, count=most)))


def add_lines(attempt_id: str, lines: Iterable[tuple[str, int]]) -> None:
    """Save lines with their times in epoch milliseconds. The attempt does not have to exist."""
    id = attempt_id[:64]
    TaskLog.objects.bulk_create(TaskLog(attempt_id=id, at=at, line=strip_nul(line)) for line, at in lines)


Count = tuple[str, str, int, int, int, int, int, int]
COLUMNS = ("scheduled", "started", "done", "failed", "busy_ms")
HOUR_MS = 3_600_000
ADD_COLUMNS = ", ".join(f"{column} = conductor_minutecount.{column} + excluded.{column}" for column in COLUMNS)


def add_counts(counts: Sequence[Count]) -> None:
    """Add to the stored counts of other processes.

    Each count has a kind, a name, a minute, the numbers of scheduled, started, completed and failed attempts, and
    their duration in milliseconds.
    """
    ordered = sorted(counts)  # All processes lock rows in the same order, so they cannot deadlock.
    for start in range(0, len(ordered), MAX_BATCH_ROWS):
        chunk = ordered[start : start + MAX_BATCH_ROWS]
        execute(
            f"INSERT INTO conductor_minutecount (kind, name, at, {', '.join(COLUMNS)}) VALUES "
            f"{', '.join(['(%s, %s, %s, %s, %s, %s, %s, %s)'] * len(chunk))} "
            f"ON CONFLICT (kind, name, at) DO UPDATE SET {ADD_COLUMNS}",
            [value for count in chunk for value in count],
        )


def add_up_hours(since: int, until: int) -> None:
    """Replace the counts per minute of full hours by one count per hour, at the minute in which the hour begins."""
    inside, params = f"at >= %s AND at < %s AND at <> at / {HOUR_MS} * {HOUR_MS}", [since, until]
    sums = ", ".join(f"SUM({column})" for column in COLUMNS)
    execute(
        f"INSERT INTO conductor_minutecount (kind, name, at, {', '.join(COLUMNS)}) "
        f"SELECT kind, name, at / {HOUR_MS} * {HOUR_MS}, {sums} FROM conductor_minutecount WHERE {inside} "
        f"GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 ON CONFLICT (kind, name, at) DO UPDATE SET {ADD_COLUMNS}",
        params,
    )
    execute(f"DELETE FROM conductor_minutecount WHERE {inside}", params)
