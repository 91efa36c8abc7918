"""What a task definition means in time: when each attempt begins if the ones before fail at once, and its limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..core.definition import TIME_OUT_RUN, Policy
from ..core.document import read_policy
from ..core.retry_backoff import delay_seconds
from ..core.step_structure import DEFAULT_TYPE
from .durations import SECOND, format_duration

MOST_DRAWN = 9
TASK_TIMES_OUT = (
    gettext_lazy("if no worker takes it by then, the task times out"),
    gettext_lazy("if it is not done by then, the task times out"),
)
CONSEQUENCES = {
    TIME_OUT_RUN: (
        gettext_lazy("if no worker takes it by then, the run times out"),
        gettext_lazy("if it is not done by then, the run times out"),
    ),
    "RETRY": (
        gettext_lazy("if no worker takes it by then, another attempt is made"),
        gettext_lazy("if it is not done by then, another attempt is made"),
    ),
    "ALERT_ONLY": (
        gettext_lazy("if no worker takes it by then, it is only counted"),
        gettext_lazy("if it is not done by then, it is only counted"),
    ),
}
"""What a timeout does, to a task that waits and to one that is worked on."""


@dataclass(frozen=True, slots=True)
class PolicyAttempt:
    """One attempt of the schedule, in percent of the whole."""

    x: str
    from_x: str
    label: str
    is_last: bool
    is_high: bool


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """All attempts as far as they are drawn, and in words."""

    attempts: tuple[PolicyAttempt, ...]
    sentence: str
    height: int = 56


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """A stretch of a task's life that is bounded; left edge and width in percent."""

    name: str
    span: str
    meaning: str
    left: str
    width: str


def policy_of(document: Mapping[str, Any]) -> Policy:
    """The policy that a task definition gives to the tasks of its name."""
    return read_policy(
        {"type": DEFAULT_TYPE, "name": str(document.get("name") or ""), "taskDefinition": dict(document)}
    )


def retry_schedule(policy: Policy) -> RetrySchedule:
    """When each attempt begins, counted from the first."""
    begins = [0]
    for number in range(min(policy.retries, MOST_DRAWN - 1)):
        begins.append(begins[-1] + delay_seconds(policy, number))
    places = [4 + 90 * begin / (begins[-1] or 1) for begin in begins]
    if begins[-1] == 0:
        places = [4 + 90 * place / max(len(begins) - 1, 1) for place in range(len(begins))]
    last = policy.retries
    attempts = tuple(
        PolicyAttempt(
            f"{places[place]:.2f}%",
            f"{places[max(place - 1, 0)]:.2f}%",
            f"{place + 1}." if place == 0 else f"+{format_duration(begin * SECOND)}",
            place == last,
            place % 2 == 1 and len(begins) > 4,
        )
        for place, begin in enumerate(begins)
    )
    return RetrySchedule(attempts, _describe(policy, begins))


def _describe(policy: Policy, begins: list[int]) -> str:
    if not policy.retries:
        return _("One attempt and no retry: its failure is final.")
    count, more = policy.retries + 1, policy.retries + 1 - len(begins)
    if begins[-1] == 0:
        return _("%(count)s attempts: retries at once.") % {"count": count}
    delays = ", ".join(format_duration((after - before) * SECOND) for before, after in pairwise(begins))
    if more:
        delays = _("%(delays)s, and %(more)s more") % {"delays": delays, "more": more}
    if policy.jitter_ms:
        delays = _("%(delays)s, each up to %(span)s later") % {
            "delays": delays,
            "span": format_duration(policy.jitter_ms),
        }
    if more:
        return _("%(count)s attempts: retries after %(delays)s.") % {"count": count, "delays": delays}
    said = _("%(count)s attempts: retries after %(delays)s; the last one %(total)s after the first failed.")
    return said % {"count": count, "delays": delays, "total": format_duration(begins[-1] * SECOND)}


def time_limits(policy: Policy) -> list[TimeLimit]:
    """The time limits along one line: queue, answer, work, all attempts together."""
    untaken, undone = CONSEQUENCES.get(policy.timeout_policy, TASK_TIMES_OUT)
    rows = [
        (_("In the queue"), policy.poll_seconds, str(untaken)),
        (_("Answer"), policy.lease_seconds, _("if the worker says nothing for so long, another attempt is made")),
        (_("One attempt"), policy.timeout_seconds, str(undone)),
        (_("All attempts"), policy.total_seconds, _("counted from the first; then it fails for good")),
    ]
    longest = max((seconds for _name, seconds, _meaning in rows), default=0) or 1
    return [
        TimeLimit(name, format_duration(seconds * SECOND), meaning, "0%", f"{max(100 * seconds / longest, 1):.1f}%")
        for name, seconds, meaning in rows
        if seconds
    ]
