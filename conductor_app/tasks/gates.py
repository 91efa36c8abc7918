"""The gates that a pending attempt must pass before a worker can claim it.

Each gate is declared once, in `GATES`: its SQL for the claim, unless the gate `due` implies it or the slots of a limit
are counted (`usage`, which `tasks/store.py` applies to the attempts that it claims), the same condition on the facts of
one attempt, and what operators read about it. `tasks/queries/waiting.py` evaluates all gates of an attempt.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from ..core.snapshot import NEVER
from ..db.statements import NamedStatement
from ..utils import process_state
from ..utils.formatting import LazyText
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
    attempt `a`, with `%(queue)s` and `%(now)s`, true while the gate is open; empty if the gate `due` implies it, or
    `usage` counts. `usage`: the statement that counts the used slots of a limit, with `name` and `since`. `sentence`:
    returns why the gate is closed; `brief`: the same in a few words, for lists. `open_sentence`: the text for an open
    gate.
    """

    name: str
    free_slots: Callable[[GateFacts], int | None]
    condition: str = ""
    usage: NamedStatement | None = None
    sentence: Callable[[GateFacts], str] = field(kw_only=True)
    brief: Callable[[GateFacts], str] = field(kw_only=True)
    open_sentence: str | LazyText = field(kw_only=True)

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


def _seconds(milliseconds: int) -> str:
    decimal = pgettext("between the whole and the tenths of a number", ".")
    return f"{max(milliseconds, 0) / 1000:.1f} s".replace(".", decimal)


def _queue_pause_sentence(f: GateFacts) -> str:
    facts = {"by": f.queue_held_by, "reason": f.queue_held_because, "span": _seconds(f.queue_held_until - f.now)}
    if f.queue_held_until < NEVER:
        sentence = (
            _("The queue was paused by %(by)s: %(reason)s. It resumes in %(span)s.")
            if f.queue_held_because
            else _("The queue was paused by %(by)s. It resumes in %(span)s.")
        )
    elif f.queue_held_because:
        sentence = _("The queue was paused by %(by)s: %(reason)s.")
    else:
        sentence = _("The queue was paused by %(by)s.") if f.queue_held_by else _("The queue is paused.")
    return sentence % facts


def _rate_limit_sentence(f: GateFacts) -> str:
    facts: dict[str, Any] = {"starts": f.starts, "limit": f.rate_count, "seconds": f.rate_seconds}
    if f.rate_reopens_at > f.now:
        facts["span"] = _seconds(f.rate_reopens_at - f.now)
        sentence = _(
            "Rate limit reached: %(starts)s of %(limit)s starts in %(seconds)s s (rateLimitPerFrequency). "
            "The next start is possible in %(span)s."
        )
        return sentence % facts
    return _("Rate limit reached: %(starts)s of %(limit)s starts in %(seconds)s s (rateLimitPerFrequency).") % facts


STOP_SENTENCES = {
    "after": gettext_lazy("Stopped at a breakpoint after this step%(by)s. It continues by itself in %(span)s."),
    "failure": gettext_lazy(
        "Stopped at a breakpoint after the failure of this step%(by)s. It continues by itself in %(span)s."
    ),
}
STOP_BEFORE = gettext_lazy("Stopped at a breakpoint before this step%(by)s. It continues by itself in %(span)s.")


def _stop_sentence(f: GateFacts) -> str:
    by = _(", set by %(by)s") % {"by": f.stopped_by} if f.stopped_by else ""
    # In minutes, so that a page need not refresh for it every second.
    span = f"{-(-max(f.stopped_until - f.now, 0) // 60_000)} min"
    sentence = STOP_SENTENCES.get(f.stopped_place, STOP_BEFORE) % {"by": by, "span": span}
    if f.stop_error:
        sentence += " " + _("Its condition could not be evaluated: %(error)s.") % {"error": f.stop_error.rstrip(".")}
    return sentence


GATES: tuple[Gate, ...] = (
    # The first attempt of a held run is not visible before the run is released, so `due` covers it.
    Gate(
        "run_slot",
        lambda f: _unlimited_if(not f.is_run_held),
        sentence=lambda f: _(
            "The workflow has reached its limit of parallel runs. This run starts when an earlier run ends."
        ),
        brief=lambda f: _("workflow limit reached"),
        open_sentence=gettext_lazy("The workflow's limit of parallel runs has room for this run."),
    ),
    # An attempt at a breakpoint is not visible before it continues, so `due` covers it.
    Gate(
        "breakpoint",
        lambda f: _unlimited_if(not f.stopped_until),
        sentence=_stop_sentence,
        brief=lambda f: _("at a breakpoint"),
        open_sentence=gettext_lazy("The task is not stopped at a breakpoint."),
    ),
    # An attempt that waits for a budget is not visible before the end of its wait, so `due` covers it.
    Gate(
        "budget",
        lambda f: _unlimited_if(f.budget is None or min(f.budget.until, f.visible_at) <= f.now),
        sentence=lambda f: f.budget.sentence if f.budget else "",
        brief=lambda f: f.budget.brief if f.budget else "",
        open_sentence=gettext_lazy("The task does not wait for a budget."),
    ),
    Gate(
        "queue",
        lambda f: _unlimited_if(f.queue_held_until <= f.now),
        "NOT EXISTS (SELECT 1 FROM conductor_queuehold h WHERE h.queue = %(queue)s AND h.until_at > %(now)s)",
        sentence=_queue_pause_sentence,
        brief=lambda f: _("queue paused"),
        open_sentence=gettext_lazy("The queue is not paused."),
    ),
    Gate(
        "due",
        lambda f: _unlimited_if(f.visible_at <= f.now),
        "a.visible_at <= %(now)s",
        sentence=lambda f: (
            _("The task is delayed for another %(span)s.") % {"span": _seconds(f.visible_at - f.now)}
            if f.visible_at < NEVER
            else _("The task has no time yet: it is held.")
        ),
        brief=lambda f: (
            _("due in %(span)s") % {"span": _seconds(f.visible_at - f.now)} if f.visible_at < NEVER else _("held")
        ),
        open_sentence=gettext_lazy("The task is due."),
    ),
    Gate(
        "deadline",
        lambda f: _unlimited_if(f.ends_at > f.now),
        "a.ends_at > %(now)s",
        sentence=lambda f: _("The task's deadline passed %(span)s ago.") % {"span": _seconds(f.now - f.ends_at)},
        brief=lambda f: _("deadline passed"),
        open_sentence=gettext_lazy("The task's deadline has not passed."),
    ),
    Gate(
        "concurrency",
        lambda f: _remaining(f.leased, f.concurrent_limit),
        usage=COUNT_LEASED,
        sentence=lambda f: (
            _("Concurrency limit reached: %(leased)s of %(limit)s tasks of this name run (concurrentExecLimit).")
            % {"leased": f.leased, "limit": f.concurrent_limit}
        ),
        brief=lambda f: _("limit %(used)s of %(limit)s") % {"used": f.leased, "limit": f.concurrent_limit},
        open_sentence=gettext_lazy("The concurrency limit is not reached."),
    ),
    Gate(
        "rate",
        lambda f: _remaining(f.starts, f.rate_count if f.rate_seconds > 0 else 0),
        usage=COUNT_STARTS,
        sentence=_rate_limit_sentence,
        brief=lambda f: _("rate limit %(limit)s in %(seconds)s s") % {"limit": f.rate_count, "seconds": f.rate_seconds},
        open_sentence=gettext_lazy("The rate limit is not reached."),
    ),
)
RUN_SLOT, BREAKPOINT, BUDGET = GATES[:3]
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


def brief_cause_of_delay(facts: GateFacts) -> str:
    """Return in a few words which gate keeps an attempt from being due; empty if it waits for its time only."""
    closed = next((gate for gate in DELAYING_GATES if not gate.lets_pass(facts)), None)
    return closed.brief(facts) if closed else ""
