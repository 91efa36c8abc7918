"""What a task definition means in time: when each attempt begins if the ones before fail at once, and its limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..core.definition import TIME_OUT_RUN, Policy
from ..core.language import read_policy
from ..core.retries import delay_seconds
from .spans import SECOND, span

MOST_DRAWN = 9


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of the schedule, in percent of the whole."""

    x: str
    from_x: str
    label: str
    is_last: bool
    is_high: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """All attempts as far as they are drawn, and in words."""

    attempts: tuple[Attempt, ...]
    sentence: str
    height: int = 56


@dataclass(frozen=True, slots=True)
class Limit:
    """A stretch of a task's life that is bounded; left edge and width in percent."""

    name: str
    span: str
    meaning: str
    left: str
    width: str


def policy_of(document: Mapping[str, Any]) -> Policy:
    """The policy that a task definition gives to the tasks of its name."""
    return read_policy({"type": "SIMPLE", "name": str(document.get("name") or ""), "taskDefinition": dict(document)})


def schedule(policy: Policy) -> Schedule:
    """When each attempt begins, counted from the first."""
    begins = [0]
    for number in range(min(policy.retries, MOST_DRAWN - 1)):
        begins.append(begins[-1] + delay_seconds(policy, number))
    places = [4 + 90 * begin / (begins[-1] or 1) for begin in begins]
    if begins[-1] == 0:
        places = [4 + 90 * place / max(len(begins) - 1, 1) for place in range(len(begins))]
    last = policy.retries
    attempts = tuple(
        Attempt(
            f"{places[place]:.2f}%",
            f"{places[max(place - 1, 0)]:.2f}%",
            f"{place + 1}." if place == 0 else f"+{span(begin * SECOND)}",
            place == last,
            place % 2 == 1 and len(begins) > 4,
        )
        for place, begin in enumerate(begins)
    )
    return Schedule(attempts, _in_words(policy, begins))


def _in_words(policy: Policy, begins: list[int]) -> str:
    if not policy.retries:
        return "One attempt and no retry: its failure is final."
    delays = [span((after - before) * SECOND) for before, after in pairwise(begins)]
    more = f", and {policy.retries + 1 - len(begins)} more" if policy.retries + 1 > len(begins) else ""
    jitter = f", each up to {span(policy.jitter_ms)} later" if policy.jitter_ms else ""
    total = span(begins[-1] * SECOND)
    waits = "at once" if begins[-1] == 0 else f"after {', '.join(delays)}{more}{jitter}"
    end = "" if more or begins[-1] == 0 else f"; the last one {total} after the first failed"
    return f"{policy.retries + 1} attempts: retries {waits}{end}."


def limits(policy: Policy) -> list[Limit]:
    """The time limits along one line: queue, answer, work, all attempts together."""
    ends = "the run times out" if policy.timeout_policy == TIME_OUT_RUN else _consequence(policy.timeout_policy)
    rows = [
        ("In the queue", policy.poll_seconds, f"if no worker takes it by then, {ends}"),
        ("Answer", policy.lease_seconds, "if the worker says nothing for so long, another attempt is made"),
        ("One attempt", policy.timeout_seconds, f"if it is not done by then, {ends}"),
        ("All attempts", policy.total_seconds, "counted from the first; then it fails for good"),
    ]
    longest = max((seconds for _name, seconds, _meaning in rows), default=0) or 1
    return [
        Limit(name, span(seconds * SECOND), meaning, "0%", f"{max(100 * seconds / longest, 1):.1f}%")
        for name, seconds, meaning in rows
        if seconds
    ]


def _consequence(policy: str) -> str:
    return {"RETRY": "another attempt is made", "ALERT_ONLY": "it is only counted"}.get(policy, "the task times out")
