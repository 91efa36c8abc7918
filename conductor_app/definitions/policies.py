"""Step types, places of steps, and the retries and time limits of a task definition, in words."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..core.definition import DEFAULT_TYPE, FORK, TIME_OUT_RUN, Policy
from ..core.document.reading import read_policy
from ..core.rules.retries_and_timeouts import delay_seconds
from ..core.step_edits import StepPlace
from ..core.step_types import DECLARED_TYPES
from ..core.step_types.forks import ForkJoin
from ..utils.formatting import SECOND, format_duration

MAX_DELAYS = 8
"""Number of delays between attempts that are listed."""
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


def type_label(type: str) -> str:
    """Return the plain name of a step type. Workers execute types that are not declared."""
    found = DECLARED_TYPES.get(ForkJoin.type if type == FORK else type) or DECLARED_TYPES[DEFAULT_TYPE]
    return _(found.label)


def place_label(place: StepPlace) -> str:
    """Return a place for a new step in words, such as `after charge`."""
    if place.after:
        return _("after %(ref)s") % {"ref": place.after}
    label = _("branch %(number)s") % {"number": place.branch} if place.branch else place.label
    if around := f"{place.owner} › {label}" if label else place.owner:
        return _("first in %(ref)s") % {"ref": around}
    return _("at the start")


def policy_context(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context of `ops/definitions/policy.html`. The document may be invalid."""
    policy = policy_of(document)
    return {"policy": {"retries": retry_sentence(policy), "limits": time_limits(policy)}}


def policy_of(document: Mapping[str, Any]) -> Policy:
    return read_policy(
        {"type": DEFAULT_TYPE, "name": str(document.get("name") or ""), "taskDefinition": dict(document)}
    )


def retry_sentence(policy: Policy) -> str:
    """Return when each attempt starts after the first, if every attempt fails immediately."""
    if not policy.retries:
        return _("1 attempt, no retries.")
    waits = [delay_seconds(policy, number) for number in range(min(policy.retries, MAX_DELAYS))]
    count, more = policy.retries + 1, policy.retries - len(waits)
    if not any(waits):
        return _("%(count)s attempts, retried immediately.") % {"count": count}
    delays = ", ".join(format_duration(seconds * SECOND) for seconds in waits)
    if more:
        delays = _("%(delays)s, and %(more)s more") % {"delays": delays, "more": more}
    if policy.jitter_ms:
        jitter = {"delays": delays, "span": format_duration(policy.jitter_ms)}
        delays = _("%(delays)s, each plus up to %(span)s jitter") % jitter
    if more:
        return _("%(count)s attempts, retried after %(delays)s.") % {"count": count, "delays": delays}
    sentence = _("%(count)s attempts, retried after %(delays)s. The last one starts %(total)s after the first failure.")
    return sentence % {"count": count, "delays": delays, "total": format_duration(sum(waits) * SECOND)}


def time_limits(policy: Policy) -> list[tuple[str, str, str]]:
    """Return name, duration and meaning of the time limits: for polling, response, one attempt and all attempts."""
    untaken, undone = CONSEQUENCES.get(policy.timeout_policy, TASK_TIMES_OUT)
    rows = [
        (_("Poll timeout"), policy.poll_seconds, str(untaken)),
        (_("Response timeout"), policy.lease_seconds, _("the task is retried if its worker is silent this long")),
        (_("Timeout per attempt"), policy.timeout_seconds, str(undone)),
        (_("Total timeout"), policy.total_seconds, _("from the first attempt on; then the task fails without retry")),
    ]
    return [(name, format_duration(seconds * SECOND), meaning) for name, seconds, meaning in rows if seconds]
