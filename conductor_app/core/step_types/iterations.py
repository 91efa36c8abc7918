"""Outcomes and items of the iterations of a step with a body."""

import re
from collections.abc import Mapping
from typing import Any

from ..data_requests import IterationOutcomes, TaskOutcome
from ..decision_context import DecisionContext
from ..definition import Step
from ..errors import StepRefused
from ..expressions import quote_value
from ..snapshot import GOOD_ENDS, Task
from ..step_structure import Document
from .field_checks import whole_number
from .task_outcomes import outcome_of


def outcomes_of_iteration(task: Task, ctx: DecisionContext) -> list[TaskOutcome] | None:
    """Return the outcomes of the tasks of the current iteration; None while one is open."""
    iteration_path = (*task.key.iteration_path, task.iteration)
    known = {t.key: t for t in ctx.inside(task.key) if t.key.iteration_path == iteration_path}
    if any(t.is_open for t in known.values()) or not ctx.run.has_changes_for(task, known):
        return None
    others = [] if ctx.run.is_whole else ctx.require(IterationOutcomes(task.key, task.iteration, frozenset(known)))
    if others is None:
        return None
    return sorted([*(outcome_of(t, ctx) for t in known.values()), *others], key=lambda outcome: outcome.seq)


def first_failure(outcomes: list[TaskOutcome]) -> TaskOutcome | None:
    """Return the first outcome that is not successful, or None."""
    return next((outcome for outcome in outcomes if outcome.status not in GOOD_ENDS), None)


def outputs_by_ref(outcomes: list[TaskOutcome]) -> dict[str, object]:
    """Return the outputs by reference."""
    return {outcome.key.ref: outcome.output for outcome in outcomes}


NEVER_TRUE = re.compile(
    r"if\s*\(\s*\$\..+\.iteration\s*<\s*0\s*\)\s*\{\s*true;?\s*\}\s*else\s*\{\s*false;?\s*\}", re.DOTALL
)
"""The condition of a loop of the Python SDK's class `ForEachTask`."""
COUNTED = "is_counted"
"""Key in the step state of an item's task: the FOR_EACH has recorded its end."""
ENDS_AS = {
    "TIMED_OUT": "expire",
    "EXPIRED": "expire",
    "CANCELED": "cancel",
    "FAILED_FOR_GOOD": "fail_for_good",
    "FAILED_WITH_TERMINAL_ERROR": "fail_for_good",
}
"""Event that ends a step after the failure of a task inside it, by the status of that task; `fail` for any other."""


def items_of(step: Step, inputs: dict[str, Any], ctx: DecisionContext) -> list[Any] | None:
    """Return the list that the step iterates over; None if it has none.

    It is the step's `items`, the input `_items`, or the input `items` of a loop that `iterates_over_input`.
    """
    written = step.document.get("items")
    name = "items" if iterates_over_input(step.document) else "_items"
    value = ctx.resolve(written) if written not in (None, "") else inputs.get(name)
    if value is None:
        return None if written in (None, "") and name not in inputs else []
    return list(value) if isinstance(value, list) else [value]


def is_null_list(step: Step, inputs: dict[str, Any], ctx: DecisionContext) -> bool:
    """Return True if the expression of the list has no value."""
    written = step.document.get("items")
    return (ctx.resolve(written) if written not in (None, "") else inputs.get("_items")) is None


def has_items(step: Document) -> bool:
    """Return True if a step's document names a list to iterate over."""
    return bool(step.get("items")) or "_items" in _inputs_of(step) or iterates_over_input(step)


def iterates_over_input(step: Document) -> bool:
    """Return True if the input `items` is the list, as in definitions of Orkes.

    The loop has no condition then, or the one that the class `ForEachTask` of the Python SDK writes, which is never
    true. With any other condition, `items` is an input that the condition may read.
    """
    if step.get("items") or "items" not in (inputs := _inputs_of(step)) or "_items" in inputs:
        return False
    condition = step.get("loopCondition")
    return not isinstance(condition, str) or not condition.strip() or bool(NEVER_TRUE.fullmatch(condition.strip()))


def _inputs_of(step: Document) -> Mapping[str, Any]:
    inputs = step.get("inputParameters")
    return inputs if isinstance(inputs, Mapping) else {}


def kept_iterations(step: Step, inputs: dict[str, Any]) -> int:
    """Return the number of iterations to keep, by `keepLastN`; 0 for all.

    Raises:
        StepRefused: when `keepLastN` is not a whole number.
    """
    keep = inputs.get("keepLastN")
    number = 0 if keep in (None, "") else whole_number(keep)
    if number is None:
        raise StepRefused(f"keepLastN of {step.ref} must be a whole number, not {quote_value(keep)}.")
    return max(number, 0)
