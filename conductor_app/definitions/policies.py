"""Retry schedule and time limits of a task definition, as drawings and sentences."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..core.definition import DEFAULT_TYPE, TIME_OUT_RUN, Policy
from ..core.document.reading import read_policy
from ..core.timers import delay_seconds
from ..utils.formatting import SECOND, format_duration

MAX_DRAWN = 9
TASK_TIMES_OUT = (
    gettext_lazy("the task times out if no worker claims it in time"),
    gettext_lazy("the task times out if it is not completed in time"),
)
CONSEQUENCES = {
    TIME_OUT_RUN: (
        gettext_lazy("the run times out if no worker claims the task in time"),
        gettext_lazy("the run times out if the task is not completed in time"),
    ),
    "RETRY": (
        gettext_lazy("the task is retried if no worker claims it in time"),
        gettext_lazy("the task is retried if it is not completed in time"),
    ),
    "ALERT_ONLY": (
        gettext_lazy("counted in the metrics if no worker claims the task in time"),
        gettext_lazy("counted in the metrics if the task is not completed in time"),
    ),
}
"""Effect of a timeout, by timeout policy: on a pending task and on a task in progress."""


@dataclass(frozen=True, slots=True)
class PolicyAttempt:
    """One attempt of the retry schedule, with its position in percent of the width."""

    x: str
    from_x: str
    label: str
    is_last: bool
    is_high: bool


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """The attempts that are drawn, and the schedule as a sentence."""

    attempts: tuple[PolicyAttempt, ...]
    sentence: str
    height: int = 56


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """One time limit of a task. Left edge and width are in percent."""

    name: str
    span: str
    meaning: str
    left: str
    width: str


def task_drawings(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context of `ops/definitions/task_drawings.html`. The document may be invalid."""
    policy = policy_of(document)
    return {"drawn": {"schedule": retry_schedule(policy), "limits": time_limits(policy)}}


def policy_of(document: Mapping[str, Any]) -> Policy:
    """Return the policy of a task definition."""
    return read_policy(
        {"type": DEFAULT_TYPE, "name": str(document.get("name") or ""), "taskDefinition": dict(document)}
    )


def retry_schedule(policy: Policy) -> RetrySchedule:
    """Return when each attempt starts after the first, if every attempt fails immediately."""
    begins = [0]
    for number in range(min(policy.retries, MAX_DRAWN - 1)):
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
        return _("1 attempt, no retries.")
    count, more = policy.retries + 1, policy.retries + 1 - len(begins)
    if begins[-1] == 0:
        return _("%(count)s attempts, retried immediately.") % {"count": count}
    delays = ", ".join(format_duration((after - before) * SECOND) for before, after in pairwise(begins))
    if more:
        delays = _("%(delays)s, and %(more)s more") % {"delays": delays, "more": more}
    if policy.jitter_ms:
        delays = _("%(delays)s, each plus up to %(span)s jitter") % {
            "delays": delays,
            "span": format_duration(policy.jitter_ms),
        }
    if more:
        return _("%(count)s attempts, retried after %(delays)s.") % {"count": count, "delays": delays}
    sentence = _("%(count)s attempts, retried after %(delays)s. The last one starts %(total)s after the first failure.")
    return sentence % {"count": count, "delays": delays, "total": format_duration(begins[-1] * SECOND)}


def time_limits(policy: Policy) -> list[TimeLimit]:
    """Return the time limits of a policy: for polling, response, one attempt and all attempts."""
    untaken, undone = CONSEQUENCES.get(policy.timeout_policy, TASK_TIMES_OUT)
    rows = [
        (_("Poll timeout"), policy.poll_seconds, str(untaken)),
        (_("Response timeout"), policy.lease_seconds, _("the task is retried if its worker is silent this long")),
        (_("Timeout per attempt"), policy.timeout_seconds, str(undone)),
        (
            _("Total timeout"),
            policy.total_seconds,
            _("measured from the first attempt; then the task fails without retry"),
        ),
    ]
    longest = max((seconds for _name, seconds, _meaning in rows), default=0) or 1
    return [
        TimeLimit(name, format_duration(seconds * SECOND), meaning, "0%", f"{max(100 * seconds / longest, 1):.1f}%")
        for name, seconds, meaning in rows
        if seconds
    ]
