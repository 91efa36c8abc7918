"""Why does this attempt wait: each gate with its verdict, whether somebody polls, and whether the run is paused."""

from collections.abc import Iterable
from dataclasses import dataclass

from .. import clock
from ..core.states import PAUSED
from ..models import Attempt, TaskDefinition
from ..models.gates import GATES, Facts
from .queues import QUIET_AFTER_MS, last_polls
from .spans import span


@dataclass(frozen=True, slots=True)
class Verdict:
    """One condition of being handed out: whether it is met, and the sentence that says so."""

    gate: str
    is_open: bool
    sentence: str


def explain(attempt_id: str) -> list[Verdict]:
    """Every condition that stands between a pending attempt and a worker; nothing for one that is not pending."""
    attempt = Attempt.objects.light().select_related("run").filter(pk=attempt_id).first()
    return verdicts_on(attempt, clock.now()) if attempt else []


def verdicts_on(attempt: Attempt, now: int) -> list[Verdict]:
    """The verdicts on an attempt that was read with its run."""
    if attempt.status != "PENDING" or not attempt.queue:
        return []
    return [*gates(attempt, now), somebody_polls(attempt, now), run_goes_on(attempt)]


def shut(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those that keep the attempt waiting."""
    return [verdict for verdict in verdicts if not verdict.is_open]


def gates(attempt: Attempt, now: int) -> list[Verdict]:
    """The gates that the claim asks, each asked alone."""
    facts = facts_of(attempt, now)
    return [
        Verdict(gate.name, gate.lets_pass(facts), OPEN[gate.name] if gate.lets_pass(facts) else gate.sentence(facts))
        for gate in GATES
    ]


OPEN = {
    "run_slot": "The workflow's limit leaves room for this run.",
    "due": "Its moment has come.",
    "deadline": "Its deadline has not passed.",
    "concurrency": "The limit of tasks worked on at a time leaves room.",
    "rate": "The rate limit leaves room.",
}


def facts_of(attempt: Attempt, now: int) -> Facts:
    """What the gates look at, read for one attempt; the counts only where there is a limit."""
    concurrent_limit, rate_count, rate_seconds = _limits(attempt)
    return Facts(
        now=now,
        visible_at=attempt.visible_at,
        ends_at=attempt.ends_at,
        is_run_held=attempt.run is not None and attempt.run.is_held,
        concurrent_limit=concurrent_limit,
        leased=_leased(attempt.name) if concurrent_limit > 0 else 0,
        rate_count=rate_count,
        rate_seconds=rate_seconds,
        starts=_starts(attempt.name, now - rate_seconds * 1000) if rate_count > 0 and rate_seconds > 0 else 0,
    )


def _limits(attempt: Attempt) -> tuple[int, int, int]:
    """The limits that are registered now for its name, else those that the attempt was created with."""
    columns = ("concurrent_limit", "rate_count", "rate_seconds")
    registered = TaskDefinition.objects.filter(name=attempt.name).values_list(*columns).first()
    return registered or (attempt.concurrent_limit, attempt.rate_count, attempt.rate_seconds)


def _leased(name: str) -> int:
    return Attempt.objects.filter(name=name, status="LEASED").exclude(queue="").count()


def _starts(name: str, since: int) -> int:
    return Attempt.objects.filter(name=name, rate_count__gt=0, claimed_at__gt=since).count()


def somebody_polls(attempt: Attempt, now: int) -> Verdict:
    """Whether a worker has asked this queue for work lately."""
    _, polled_at = last_polls(attempt.queue).get(attempt.queue, (0, None))
    if polled_at is None:
        return Verdict("polled", False, f"No worker has ever polled queue `{attempt.queue}`.")
    if now - polled_at >= QUIET_AFTER_MS:
        return Verdict("polled", False, f"Nobody has polled queue `{attempt.queue}` for {span(now - polled_at)}.")
    return Verdict("polled", True, f"Queue `{attempt.queue}` was polled {span(now - polled_at)} ago.")


def run_goes_on(attempt: Attempt) -> Verdict:
    """Whether the run is paused. That keeps no attempt back: the claim does not ask for it."""
    if attempt.run is not None and attempt.run.status == PAUSED:
        return Verdict("run", True, "The run is paused: this may still be handed out, but what follows it waits.")
    return Verdict("run", True, "The run is not paused.")
