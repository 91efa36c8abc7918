"""The gates that a pending attempt must pass before a worker can claim it.

Each gate is declared once, with the SQL that the claim uses (`tasks/store.py`), the same condition on the facts of one
attempt, and under the same name the sentences that operators read (`tasks/queries/gate_sentences.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.snapshot import NEVER
from ..db.named_statements import NamedStatement
from ..utils import process_state
from ..utils.process_state import Wiring


@dataclass(frozen=True, slots=True)
class Hold:
    """A wait of an attempt until a time (epoch milliseconds), with its reason as a sentence and in a few words."""

    until: int
    sentence: str
    brief: str


@dataclass(frozen=True, slots=True)
class HoldSource:
    """Where the holds of attempts are stored.

    `columns`: expressions on a row of an attempt. `read`: returns the hold that a row with these columns describes.
    """

    columns: Mapping[str, Any]
    read: Callable[[Mapping[str, Any]], Hold | None]


BUDGET_HOLDS: Wiring[HoldSource | None] = process_state.wiring(None)
"""The source of the holds that wait for a budget. The slice that keeps budgets connects it."""


@dataclass(frozen=True, slots=True)
class GateFacts:
    """The facts that gates evaluate. Times are epoch milliseconds.

    `leased`: claimed attempts of the same name. `starts`: attempts started in the current rate window.
    `start_times`: the newest of them, at most as many as the limit allows, earliest first. `queue_held_until`: the end
    of the pause of the queue. `budget`: the wait for a budget.
    """

    now: int
    visible_at: int
    ends_at: int = NEVER
    is_run_held: bool = False
    stopped_until: int = 0
    stopped_by: str = ""
    stopped_place: str = ""
    stop_error: str = ""
    budget: Hold | None = None
    concurrent_limit: int = 0
    leased: int = 0
    rate_count: int = 0
    rate_seconds: int = 1
    starts: int = 0
    start_times: tuple[int, ...] = ()
    queue_held_until: int = 0
    queue_held_by: str = ""
    queue_held_because: str = ""

    @property
    def rate_reopens_at(self) -> int:
        """Return when the rate limit lets the next attempt pass if it does not now."""
        is_full = self.rate_count > 0 and len(self.start_times) >= self.rate_count
        return self.start_times[0] + self.rate_seconds * 1000 if is_full else 0


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate: one condition on attempts.

    `free_slots`: returns the number of attempts that may pass now, or None for any number. `condition`: SQL on the
    attempt `a`, with `%(queue)s` and `%(now)s`, true while the gate is open; empty if another gate's condition implies
    it. `usage`: the statement that counts the used slots of a limit, with `name` and `since`.
    """

    name: str
    free_slots: Callable[[GateFacts], int | None]
    condition: str = ""
    usage: NamedStatement | None = None

    def lets_pass(self, facts: GateFacts) -> bool:
        free = self.free_slots(facts)
        return free is None or free > 0


def _unlimited_if(condition: bool) -> int | None:
    return None if condition else 0


def _remaining(count: int, limit: int) -> int | None:
    return None if limit <= 0 else max(limit - count, 0)


def stop_facts(stop: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the facts of a stop as the document of its run stores it; none if there is no stop."""
    if stop is None:
        return {}
    return {
        "stopped_until": stop["until"],
        "stopped_by": stop["by"],
        "stopped_place": stop["place"],
        "stop_error": stop.get("error", ""),
    }


COUNT_LEASED = NamedStatement(
    """
    -- name: count_leased
    -- Count the claimed attempts of a name.
    -- index: attempt_leased
    -- Without statistics, SQLite prefers any index on the same columns to one with a condition.
    SELECT COUNT(*) FROM conductor_attempt
    INDEXED BY attempt_leased -- sqlite
    WHERE name = %(name)s AND status = 'LEASED' AND NOT (queue = '')
    """
)
COUNT_STARTS = NamedStatement(
    """
    -- name: count_starts
    -- Count the attempts of a name that have started in its rate window.
    -- index: attempt_by_claim
    SELECT COUNT(*) FROM conductor_attempt
    INDEXED BY attempt_by_claim -- sqlite
    WHERE name = %(name)s AND rate_count > 0 AND claimed_at > %(since)s
    """
)
GATES: tuple[Gate, ...] = (
    # The first attempt of a held run is not visible before the run is released, so `due` covers it.
    Gate("run_slot", lambda f: _unlimited_if(not f.is_run_held)),
    # An attempt at a breakpoint is not visible before it continues, so `due` covers it.
    Gate("breakpoint", lambda f: _unlimited_if(not f.stopped_until)),
    # An attempt that waits for a budget is not visible before the end of its wait, so `due` covers it.
    Gate("budget", lambda f: _unlimited_if(f.budget is None or min(f.budget.until, f.visible_at) <= f.now)),
    Gate(
        "queue",
        lambda f: _unlimited_if(f.queue_held_until <= f.now),
        "NOT EXISTS (SELECT 1 FROM conductor_queuehold h WHERE h.queue = %(queue)s AND h.until_at > %(now)s)",
    ),
    Gate("due", lambda f: _unlimited_if(f.visible_at <= f.now), "a.visible_at <= %(now)s"),
    Gate("deadline", lambda f: _unlimited_if(f.ends_at > f.now), "a.ends_at > %(now)s"),
    Gate("concurrency", lambda f: _remaining(f.leased, f.concurrent_limit), usage=COUNT_LEASED),
    Gate("rate", lambda f: _remaining(f.starts, f.rate_count if f.rate_seconds > 0 else 0), usage=COUNT_STARTS),
)
BREAKPOINT, BUDGET = GATES[1:3]
DELAYING_GATES = GATES[:3]
"""The gates that keep an attempt from being due."""
CONCURRENCY, RATE = GATES[-2:]
LIMIT_GATES = tuple(gate for gate in GATES if gate.usage)


def open_condition() -> str:
    """Return an SQL condition on an attempt `a`: true while every gate without a limit is open."""
    return " AND ".join(gate.condition for gate in GATES if gate.condition)


def free_capacity(facts: GateFacts) -> int | None:
    """Return the number of attempts of one name that the limits allow now, or None for any number."""
    counts = [gate.free_slots(facts) for gate in LIMIT_GATES]
    return min((count for count in counts if count is not None), default=None)
