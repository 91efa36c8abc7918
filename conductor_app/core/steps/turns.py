"""What the tasks in one turn of a step with a body came to."""

from ..knowledge import Knowledge
from ..questions import Inside, Outcome
from ..snapshot import GOOD_ENDS, Task
from .outcomes import outcome_of


def outcomes_of_turn(task: Task, know: Knowledge) -> list[Outcome] | None:
    """What the tasks of the present turn came to; None as long as one is open."""
    turn = (*task.key.turn, task.iteration)
    known = {t.key: t for t in know.run.tasks.values() if t.loop == task.key and t.key.turn == turn}
    if any(t.is_open for t in known.values()) or not know.run.has_news_for(task, known):
        return None
    others = [] if know.run.is_whole else know.ask(Inside(task.key, task.iteration, frozenset(known)))
    if others is None:
        return None
    return sorted([*(outcome_of(t, know) for t in known.values()), *others], key=lambda outcome: outcome.seq)


def first_failure(outcomes: list[Outcome]) -> Outcome | None:
    """The first that did not succeed."""
    return next((outcome for outcome in outcomes if outcome.status not in GOOD_ENDS), None)


def outputs_by_ref(outcomes: list[Outcome]) -> dict[str, object]:
    """What each gave, by its reference."""
    return {outcome.key.ref: outcome.output for outcome in outcomes}
