"""What an open attempt is waiting for, in one sentence each."""

from collections.abc import Sequence

from ..core.snapshot import NEVER
from ..models import Attempt, Task
from .explain import Verdict, shut
from .spans import span

STRUCTURE = (
    "JOIN",
    "EXCLUSIVE_JOIN",
    "DO_WHILE",
    "FOR_EACH",
    "FOR_EACH_ITEM",
    "TRY_CATCH",
    "FORK_JOIN",
    "FORK_JOIN_DYNAMIC",
)
"""Steps that only wait for other tasks of the same run: what those wait for says more."""


def by_interest(attempt: Attempt) -> tuple[int, int]:
    """Sorts open attempts: what is stuck in a queue first, what merely waits for the others last."""
    if attempt.task.type in STRUCTURE:
        return 3, attempt.seq
    return {"PENDING": 0}.get(attempt.status, 1 if attempt.queue == "" else 2), attempt.seq


def what_it_waits_for(attempt: Attempt, tries: int | None, verdicts: Sequence[Verdict], now: int) -> str:
    """The sentence for one open attempt that was read with its task and run."""
    if attempt.status == "PENDING":
        return _pending(attempt, tries, verdicts, now)
    if attempt.queue:
        return _with_a_worker(attempt, now)
    return _held_by_the_engine(attempt, now)


def _pending(attempt: Attempt, tries: int | None, verdicts: Sequence[Verdict], now: int) -> str:
    delayed = attempt.visible_at > now
    if delayed and attempt.poll_count == 0 and attempt.number > 0:
        return f"retry of `{attempt.task}` in {span(attempt.visible_at - now)}{_which(attempt, tries)}{_after(attempt)}"
    if delayed and attempt.poll_count > 0:
        return f"`{attempt.task}` was handed back by its worker and is due again in {span(attempt.visible_at - now)}"
    if delayed:
        return f"`{attempt.task}` starts in {span(attempt.visible_at - now)}"
    return f"`{attempt.task}` — {_why(attempt, verdicts, now)}"


def _which(attempt: Attempt, tries: int | None) -> str:
    return f" (attempt {attempt.number + 1} of {tries})" if tries else f" (attempt {attempt.number + 1})"


def _after(attempt: Attempt) -> str:
    return f", after: {first_line(attempt.reason)}" if attempt.reason else ""


def _why(attempt: Attempt, verdicts: Sequence[Verdict], now: int) -> str:
    obstacles = shut(verdicts)
    if obstacles:
        sentence = obstacles[0].sentence.rstrip(".")
        return sentence[:1].lower() + sentence[1:]
    return f"next in queue `{attempt.queue}` since {span(now - attempt.pending_since)}"


def _with_a_worker(attempt: Attempt, now: int) -> str:
    worker = f"worker `{attempt.worker}`" if attempt.worker else "a worker"
    since = span(now - (attempt.claimed_at or attempt.started_at or now))
    lease = f"; its lease ends in {span(attempt.lease_ends_at - now)}" if (attempt.lease_ends_at or 0) > now else ""
    return f"`{attempt.task}` is with {worker} since {since}{lease}"


def _held_by_the_engine(attempt: Attempt, now: int) -> str:
    say = HELD.get(attempt.task.type)
    return say(attempt, now) if say else f"`{attempt.task}` ({attempt.task.type}) waits for its moment"


def _until(attempt: Attempt, now: int) -> str:
    if attempt.ends_at == NEVER:
        return f"`{attempt.task}` waits to be reported on"
    return f"`{attempt.task}` waits another {span(attempt.ends_at - now)}"


def _turn(task: Task) -> str:
    return f"`{task}` is in turn {task.iteration}"


PHASES = {2: "handler", 3: "last tasks"}


HELD = {
    "HUMAN": lambda attempt, now: f"`{attempt.task}` waits for a person since {span(now - attempt.scheduled_at)}",
    "WAIT": _until,
    "PULL_WORKFLOW_MESSAGES": lambda attempt, now: f"`{attempt.task}` waits for a message to the workflow",
    "SUB_WORKFLOW": lambda attempt, now: f"`{attempt.task}` waits for its sub-workflow",
    "JOIN": lambda attempt, now: f"`{attempt.task}` waits for the branches that it joins",
    "EXCLUSIVE_JOIN": lambda attempt, now: f"`{attempt.task}` waits for the first of its branches",
    "DO_WHILE": lambda attempt, now: _turn(attempt.task),
    "FOR_EACH": lambda attempt, now: f"`{attempt.task}` waits for its items; {attempt.task.iteration} have begun",
    "FOR_EACH_ITEM": lambda attempt, now: f"`{attempt.task}` waits for what is done for its item",
    "TRY_CATCH": lambda attempt, now: f"`{attempt.task}` waits for its {PHASES.get(attempt.task.iteration, 'body')}",
}


def first_line(text: str, most: int = 300) -> str:
    """The first line of a reason, cut where it is long."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= most else line[: most - 1] + "…"
