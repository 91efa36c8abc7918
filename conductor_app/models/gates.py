"""The gates that a pending attempt must pass to be handed out: a name, a condition, a sentence.

The claim takes what passes all of them (`store/claims.py`); `insight/gate_verdicts.py` asks each alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from ..core.snapshot import NEVER


@dataclass(frozen=True, slots=True)
class GateFacts:
    """What the gates look at. `leased`: how many of its name are out; `starts`: those of the running rate window.

    `queue_held_until`: the queue hands nothing out before that. `rate_reopens_at`: when the first of those starts is
    no longer of the window.
    """

    now: int
    visible_at: int
    ends_at: int = NEVER
    is_run_held: bool = False
    concurrent_limit: int = 0
    leased: int = 0
    rate_count: int = 0
    rate_seconds: int = 1
    starts: int = 0
    rate_reopens_at: int = 0
    queue_held_until: int = 0
    queue_held_by: str = ""
    queue_held_because: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition. `free_slots` is how many attempts may pass it now: None is any number."""

    name: str
    free_slots: Callable[[GateFacts], int | None]
    sentence: Callable[[GateFacts], str]

    def lets_pass(self, facts: GateFacts) -> bool:
        return self.free_slots(facts) is None or self.free_slots(facts) > 0


def _unlimited_if(condition: bool) -> int | None:
    return None if condition else 0


def _remaining(count: int, limit: int) -> int | None:
    return None if limit <= 0 else max(limit - count, 0)


def _seconds(milliseconds: int) -> str:
    decimal = pgettext("between the whole and the tenths of a number", ".")
    return f"{max(milliseconds, 0) / 1000:.1f} s".replace(".", decimal)


def _queue_pause_sentence(f: GateFacts) -> str:
    """Who paused the queue, why, and until when, as far as that is known."""
    named = {"by": f.queue_held_by, "reason": f.queue_held_because, "span": _seconds(f.queue_held_until - f.now)}
    if f.queue_held_until < NEVER:
        sentence = (
            _("The queue was paused by %(by)s: %(reason)s; it opens in %(span)s.")
            if f.queue_held_because
            else _("The queue was paused by %(by)s; it opens in %(span)s.")
        )
    elif f.queue_held_because:
        sentence = _("The queue was paused by %(by)s: %(reason)s.")
    else:
        sentence = _("The queue was paused by %(by)s.") if f.queue_held_by else _("The queue was paused.")
    return sentence % named


def _rate_limit_sentence(f: GateFacts) -> str:
    named = {"starts": f.starts, "limit": f.rate_count, "seconds": f.rate_seconds}
    if f.rate_reopens_at > f.now:
        named["span"] = _seconds(f.rate_reopens_at - f.now)
        sentence = _(
            "%(starts)s of %(limit)s starts in %(seconds)s s are used up (rateLimitPerFrequency); the next in %(span)s."
        )
        return sentence % named
    return _("%(starts)s of %(limit)s starts in %(seconds)s s are used up (rateLimitPerFrequency).") % named


GATES: tuple[Gate, ...] = (
    Gate(
        "run_slot",
        lambda f: _unlimited_if(not f.is_run_held),
        lambda f: _("The workflow's limit of runs at a time is reached; this run waits for an earlier one to end."),
    ),
    Gate(
        "queue",
        lambda f: _unlimited_if(f.queue_held_until <= f.now),
        _queue_pause_sentence,
    ),
    Gate(
        "due",
        lambda f: _unlimited_if(f.visible_at <= f.now),
        lambda f: _("Not before its delay is over, in %(span)s.") % {"span": _seconds(f.visible_at - f.now)},
    ),
    Gate(
        "deadline",
        lambda f: _unlimited_if(f.ends_at > f.now),
        lambda f: _("Its deadline passed %(span)s ago.") % {"span": _seconds(f.now - f.ends_at)},
    ),
    Gate(
        "concurrency",
        lambda f: _remaining(f.leased, f.concurrent_limit),
        lambda f: (
            _("%(leased)s of %(limit)s tasks of this name are being worked on (concurrentExecLimit).")
            % {"leased": f.leased, "limit": f.concurrent_limit}
        ),
    ),
    Gate(
        "rate",
        lambda f: _remaining(f.starts, f.rate_count if f.rate_seconds > 0 else 0),
        _rate_limit_sentence,
    ),
)


def free_capacity(facts: GateFacts) -> int | None:
    """How many attempts of one name may be handed out now by the gates that count; None is any number."""
    counts = [gate.free_slots(facts) for gate in GATES if gate.name in ("concurrency", "rate")]
    bounded = [count for count in counts if count is not None]
    return min(bounded, default=None)


def evaluate_gates(facts: GateFacts) -> list[dict[str, Any]]:
    """Each gate with its verdict and, where it is shut, its sentence."""
    return [
        {
            "gate": gate.name,
            "open": gate.lets_pass(facts),
            "sentence": "" if gate.lets_pass(facts) else gate.sentence(facts),
        }
        for gate in GATES
    ]
