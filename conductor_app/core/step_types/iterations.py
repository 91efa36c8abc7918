"""What the tasks in one turn of a step with a body came to."""

from typing import Any

from ..data_requests import Inside, Outcome
from ..decision_context import Knowledge
from ..definition import Step
from ..errors import StepRefused
from ..snapshot import GOOD_ENDS, Task
from .outcomes import outcome_of


def outcomes_of_turn(task: Task, know: Knowledge) -> list[Outcome] | None:
    """What the tasks of the present turn came to; None as long as one is open."""
    turn = (*task.key.turn, task.iteration)
    known = {t.key: t for t in know.inside(task.key) if t.key.turn == turn}
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


COUNTED = "is_counted"
"""In the memo of an item's task: the FOR_EACH knows that it has ended."""
ENDS_AS = {
    "TIMED_OUT": "expire",
    "EXPIRED": "expire",
    "CANCELED": "cancel",
    "FAILED_FOR_GOOD": "fail_for_good",
    "FAILED_WITH_TERMINAL_ERROR": "fail_for_good",
}
"""How a step ends by the failure of a task inside it, whoever spells its status; after any other it is `fail`."""


def items_of(step: Step, inputs: dict[str, Any], know: Knowledge) -> list[Any] | None:
    """The list that the step goes through: its `items`, or the input `_items`; None if it has neither."""
    written = step.document.get("items")
    value = know.resolve(written) if written not in (None, "") else inputs.get("_items")
    if value is None:
        return None if written in (None, "") and "_items" not in inputs else []
    return list(value) if isinstance(value, list) else [value]


def kept_turns(step: Step, inputs: dict[str, Any]) -> int:
    """How many of the last turns are kept, by `keepLastN`; 0 for all."""
    keep = inputs.get("keepLastN")
    try:
        return 0 if keep in (None, "") else max(int(keep), 0)
    except (TypeError, ValueError):
        raise StepRefused(f"keepLastN of {step.ref} must be a whole number; it is {keep!r}.") from None
