"""What operators read about the gates of `tasks/gates.py`: a sentence on each open and each closed gate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from ...core.snapshot import NEVER
from ...utils.formatting import LazyText
from ..gates import DELAYING_GATES, GateFacts


@dataclass(frozen=True, slots=True)
class GateText:
    """The texts on one gate.

    `sentence`: returns the reason why the gate is closed. `open_sentence`: the text for an open gate. `brief`: returns
    the reason in a few words, for lists.
    """

    sentence: Callable[[GateFacts], str]
    open_sentence: str | LazyText
    brief: Callable[[GateFacts], str]


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


GATE_TEXTS: dict[str, GateText] = {
    "run_slot": GateText(
        lambda f: _("The workflow has reached its limit of parallel runs. This run starts when an earlier run ends."),
        gettext_lazy("The workflow's limit of parallel runs has room for this run."),
        lambda f: _("workflow limit reached"),
    ),
    "breakpoint": GateText(
        _stop_sentence, gettext_lazy("The task is not stopped at a breakpoint."), lambda f: _("at a breakpoint")
    ),
    "budget": GateText(
        lambda f: f.budget.sentence if f.budget else "",
        gettext_lazy("The task does not wait for a budget."),
        lambda f: f.budget.brief if f.budget else "",
    ),
    "queue": GateText(_queue_pause_sentence, gettext_lazy("The queue is not paused."), lambda f: _("queue paused")),
    "due": GateText(
        lambda f: _("The task is delayed for another %(span)s.") % {"span": _seconds(f.visible_at - f.now)},
        gettext_lazy("The task is due."),
        lambda f: _("due in %(span)s") % {"span": _seconds(f.visible_at - f.now)},
    ),
    "deadline": GateText(
        lambda f: _("The task's deadline passed %(span)s ago.") % {"span": _seconds(f.now - f.ends_at)},
        gettext_lazy("The task's deadline has not passed."),
        lambda f: _("deadline passed"),
    ),
    "concurrency": GateText(
        lambda f: (
            _("Concurrency limit reached: %(leased)s of %(limit)s tasks of this name run (concurrentExecLimit).")
            % {"leased": f.leased, "limit": f.concurrent_limit}
        ),
        gettext_lazy("The concurrency limit is not reached."),
        lambda f: _("limit %(used)s of %(limit)s") % {"used": f.leased, "limit": f.concurrent_limit},
    ),
    "rate": GateText(
        _rate_limit_sentence,
        gettext_lazy("The rate limit is not reached."),
        lambda f: _("rate limit %(limit)s in %(seconds)s s") % {"limit": f.rate_count, "seconds": f.rate_seconds},
    ),
}
"""The texts on each gate, by its name."""


def brief_cause_of_delay(facts: GateFacts) -> str:
    """Return in a few words, without a time, why an attempt of a queue becomes due later."""
    closed = next((gate.name for gate in DELAYING_GATES if not gate.lets_pass(facts)), "")
    return GATE_TEXTS[closed].brief(facts) if closed else _("due later")
