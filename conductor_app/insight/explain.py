"""Why does this attempt wait: each gate with its verdict, whether somebody polls, and whether the run is paused."""

from dataclasses import dataclass

from .. import clock
from ..core.states import PAUSED
from ..models import Attempt
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


def shut(verdicts: list[Verdict]) -> list[Verdict]:
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
    "concurrency": "The limit of tasks worked on at a time leaves room.",
    "rate": "The rate limit leaves room.",
}


def facts_of(attempt: Attempt, now: int) -> Facts:
    """What the gates look at, read for one attempt; the counts only where there is a limit."""
    return Facts(
        now=now,
        visible_at=attempt.visible_at,
        is_run_held=attempt.run.is_held,
        concurrent_limit=attempt.concurrent_limit,
        leased=_leased(attempt) if attempt.concurrent_limit > 0 else 0,
        rate_count=attempt.rate_count,
        rate_seconds=attempt.rate_seconds,
        starts=_starts(attempt, now) if attempt.rate_count > 0 else 0,
    )


def _leased(attempt: Attempt) -> int:
    return Attempt.objects.filter(name=attempt.name, status="LEASED").exclude(queue="").count()


def _starts(attempt: Attempt, now: int) -> int:
    since = now - attempt.rate_seconds * 1000
    return Attempt.objects.filter(name=attempt.name, rate_count__gt=0, claimed_at__gt=since).count()


def somebody_polls(attempt: Attempt, now: int) -> Verdict:
    """Whether a worker has asked this queue for work lately."""
    _, polled_at = last_polls(attempt.queue).get(attempt.queue, (0, None))
    if polled_at is None:
        return Verdict("polled", False, f"No worker has ever polled queue `{attempt.queue}`.")
    if now - polled_at >= QUIET_AFTER_MS:
        return Verdict("polled", False, f"Nobody has polled queue `{attempt.queue}` for {span(now - polled_at)}.")
    return Verdict("polled", True, f"Queue `{attempt.queue}` was polled {span(now - polled_at)} ago.")


def run_goes_on(attempt: Attempt) -> Verdict:
    """Whether the run is paused: what was scheduled before may still be handed out, what follows waits."""
    if attempt.run.status == PAUSED:
        return Verdict("run", False, "The run is paused: nothing that follows is scheduled until it is resumed.")
    return Verdict("run", True, "The run is not paused.")
