"""The cause line: why a run is where it is, in one sentence. Names stand between backticks."""

from collections.abc import Iterable
from dataclasses import dataclass

from .. import clock
from ..core.states import COMPLETED, FAILED, PAUSED, RUNNING, TERMINATED, TIMED_OUT
from ..models import Attempt, HistoryEntry, Run
from .explain import Verdict, verdicts_on
from .moves import last_move
from .plans import plan, tries_allowed
from .spans import span
from .waits import by_interest, first_line, what_it_waits_for

DEEPEST = 3
"""How many sub-workflows are followed down to the first failure."""
NO_REASON = "no reason was given"
MOST_READ = 200
"""How many open attempts are looked at to choose the one that is named."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The sentence, what it speaks of, and for a pending attempt the verdicts that were asked for it."""

    sentence: str
    task: str = ""
    attempt_id: str = ""
    child_id: str = ""
    verdicts: tuple[Verdict, ...] = ()

    @property
    def is_waiting(self) -> bool:
        """Whether nobody works on what it speaks of."""
        return self.sentence.startswith("Waiting")


def cause(run: Run, now: int | None = None) -> Cause:
    """Why the run is where it is."""
    return CAUSES[run.status](run, clock.now() if now is None else now)


def failures(runs: Iterable[Run]) -> dict[str, tuple[str, str]]:
    """Of runs that failed: by run id, the task that failed and the first line of the reason, read together."""
    failed = {run.failed_attempt_id: run.pk for run in runs if run.failed_attempt_id}
    attempts = Attempt.objects.light().filter(pk__in=list(failed)).select_related("task") if failed else ()
    return {
        failed[attempt.pk]: (str(attempt.task), first_line(attempt.reason, 200) or NO_REASON) for attempt in attempts
    }


def _running(run: Run, now: int) -> Cause:
    if run.is_held:
        return Cause("Waiting: the workflow's limit of runs at a time is reached; an earlier run has to end first")
    attempts = sorted(_open_attempts(run), key=by_interest)
    if not attempts:
        return Cause("Waiting: the engine is about to decide what comes next")
    first, others = attempts[0], len(attempts) - 1
    word = "Running" if first.status == "LEASED" and first.queue else "Waiting"
    more = f"; {others} more {'task is' if others == 1 else 'tasks are'} open" if others else ""
    verdicts = tuple(verdicts_on(first, now))
    sentence = what_it_waits_for(first, tries_allowed(plan(run.plan_id), first.task), verdicts, now)
    return Cause(f"{word}: {sentence}{more}", str(first.task), first.id, first.child_id, verdicts)


def _open_attempts(run: Run) -> list[Attempt]:
    found = Attempt.objects.light().open().filter(run_id=run.pk).select_related("task").order_by("seq")[:MOST_READ]
    for attempt in found:
        attempt.run = run
    return list(found)


def _failed(run: Run, now: int, deeper: int = DEEPEST) -> Cause:
    attempt = Attempt.objects.light().filter(pk=run.failed_attempt_id).select_related("task").first()
    if attempt is None:
        return Cause(f"Failed: {first_line(run.reason) or NO_REASON}")
    which = _which(attempt, tries_allowed(plan(run.plan_id), attempt.task))
    reason = _inside(attempt, now, deeper) or first_line(attempt.reason) or NO_REASON
    return Cause(f"Failed at `{attempt.task}`, {which}: {reason}", str(attempt.task), attempt.id, attempt.child_id)


def _which(attempt: Attempt, tries: int | None) -> str:
    number = attempt.number + 1
    # An operator's retry goes beyond what the policy allows.
    return f"attempt {number} of {max(tries, number)}" if tries else f"attempt {number}"


def _inside(attempt: Attempt, now: int, deeper: int) -> str:
    """Where its sub-workflow failed, if that is why it did."""
    child = Run.objects.light().filter(pk=attempt.child_id).first() if attempt.child_id and deeper else None
    if child is None or not child.failed_attempt_id:
        return ""
    return f"its sub-workflow {_failed(child, now, deeper - 1).sentence.replace('Failed', 'failed', 1)}"


def _timed_out(run: Run, now: int) -> Cause:
    said = _failed(run, now)
    sentence = said.sentence.replace("Failed", "Timed out", 1)
    return Cause(sentence, said.task, said.attempt_id, said.child_id)


def _terminated(run: Run, now: int) -> Cause:
    said = f": {first_line(run.reason)}" if run.reason else ""
    return Cause(f"Terminated {_by_whom(run, 'terminate')}{span(now - (run.ended_at or now))} ago{said}")


def _paused(run: Run, now: int) -> Cause:
    out = Attempt.objects.filter(run_id=run.pk, status="LEASED").exclude(queue="").count()
    still = f"; {out} {'task is' if out == 1 else 'tasks are'} still with workers" if out else ""
    entry = last_move(run.pk, "pause")
    said = f": {first_line(entry.reason)}" if entry and entry.reason else ""
    since = f"{span(now - entry.at)} ago" if entry else ""
    return Cause(f"Paused {_by_whom(run, 'pause', entry)}{since}{said}{still}".rstrip())


def _by_whom(run: Run, event: str, entry: HistoryEntry | None = None) -> str:
    entry = entry or last_move(run.pk, event)
    return f"by {entry.by} " if entry and entry.by else ""


def _completed(run: Run, now: int) -> Cause:
    reason = f": {first_line(run.reason)}" if run.reason else ""
    return Cause(f"Completed in {span((run.ended_at or now) - run.created_at)}{reason}")


CAUSES = {
    RUNNING: _running,
    PAUSED: _paused,
    FAILED: _failed,
    TIMED_OUT: _timed_out,
    TERMINATED: _terminated,
    COMPLETED: _completed,
}
