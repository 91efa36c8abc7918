"""Shared parts of steps with cases: the value that selects a case, and the successor of the step."""

from collections.abc import Iterator
from typing import Any, cast

from ..definition import Key, Step
from ..expressions import java_text
from ..snapshot import Task
from ..step_state import StepState, TaskState
from ..step_structure import Body, Document, Flow, as_steps, body_at, structure_of

DEFAULT_CASE = "defaultCase"


class ChoiceState(TaskState, total=False):
    """`head`: the first step of the chosen case, None if the case is empty."""

    head: str | None


def case_text(value: Any) -> str:
    """Return the value as the text that selects a case: null, true, 1, 1.5."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else java_text(value)


def case_bodies(step: Document) -> Iterator[Body]:
    """Yield the bodies of the cases, and last the one for every other value."""
    cases = step.get("decisionCases")
    for case, steps in cases.items() if isinstance(cases, dict) else ():
        place = f"decisionCases[{case}]"
        yield Body(place, ("decisionCases", case), place, as_steps(steps), str(case))
    yield body_at(step, DEFAULT_CASE, label="otherwise")


def is_choice(step: Step) -> bool:
    """Return True if the step leads to one of several cases."""
    return structure_of(step.type).flow is Flow.CHOICE


def case_of_head(step: Step, head: str) -> str:
    """Return the name of the case that begins with this step."""
    names = (name for name, first in step.bodies.items() if first == head and name != DEFAULT_CASE)
    return next((name[len("decisionCases[") : -1] for name in names), "default")


def upgraded_head(task: Task, old: Task | None) -> StepState:
    """Return the state in which a step that has chosen leads to the current first step of its case."""
    head = task.step_state.get("head")
    if old is None or not head:
        return task.step_state
    bodies, default = task.step.bodies, task.step.bodies.get(DEFAULT_CASE)
    case = next((name for name, first in old.step.bodies.items() if first == head and name != DEFAULT_CASE), None)
    return {**task.step_state, "head": default if case is None else bodies.get(case, default)}


def case_inputs(case: str, head: str | None) -> dict[str, str]:
    """Return the inputs that name the chosen case."""
    return {"case": case} | ({"hasChildren": "true"} if head else {})


def case_successor(task: Task) -> Iterator[Key]:
    """Yield the head of the chosen case, or the next step if the case is empty."""
    target = cast(ChoiceState, task.step_state).get("head") or task.step.follower
    if target and task.lets_control_pass:
        yield Key(target, task.key.iteration_path)
