"""What somebody wants the tasks of a try to come to, said step by step, and the script that it means."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..step_structure import structure_of_step
from ..step_tree import StepSpot, walk
from .simulated_run import SimulationScript, TaskMock

GIVES, FAILS, FAILS_FOR_GOOD, TIMES_OUT, STAYS = "gives", "fails", "fails_for_good", "times_out", "stays"
SIMULATED_TYPES = "played"
KINDS_OF_OUTCOMES = {
    GIVES: "completes and gives",
    FAILS: "fails, then completes and gives",
    FAILS_FOR_GOOD: "fails for good",
    TIMES_OUT: "times out",
    STAYS: "stays open",
    SIMULATED_TYPES: "is played itself",
}
INSIDE = ">"
"""Stands between a sub-workflow's step and a step of that sub-workflow."""
ENOUGH = 300
"""Attempts of one step that something is said for: loops take one each turn."""


class SimulatedOutcome(NamedTuple):
    """What one step comes to: how, how often it fails before, and what it gives."""

    how: str = GIVES
    times: int = 1
    output: Any = None


def steps_needing_outcome(document: Mapping[str, Any]) -> Iterator[StepSpot]:
    """The steps that somebody outside ends, so that a try must be told how; a dynamic fork stands for its branches."""
    for spot in walk(document.get("tasks")):
        if spot.ref and structure_of_step(spot.step).needs_simulated_result(spot.step):
            yield spot


def build_script(outcomes: Mapping[str, SimulatedOutcome]) -> SimulationScript:
    """What the play does with each attempt of these steps, whichever turn it belongs to; `sub>ref` is a step inside."""
    own = {ref: outcome for ref, outcome in outcomes.items() if INSIDE not in ref}
    mocks = {ref: found for ref, outcome in own.items() if (found := tuple(_task_mocks(outcome)))}
    children = {
        ref: build_script(outcomes_inside(outcomes, ref)) for ref, told in own.items() if told.how == SIMULATED_TYPES
    }
    # What is said of a dynamic fork is said of each task that it makes.
    return SimulationScript(mocks, children, branches=mocks)


def outcomes_inside(outcomes: Mapping[str, SimulatedOutcome], ref: str) -> dict[str, SimulatedOutcome]:
    """What is said of the steps of a sub-workflow, by their references there."""
    begin = f"{ref}{INSIDE}"
    return {name.removeprefix(begin): outcome for name, outcome in outcomes.items() if name.startswith(begin)}


def _task_mocks(outcome: SimulatedOutcome) -> Iterator[TaskMock]:
    given = outcome.output if isinstance(outcome.output, dict) else {}
    if outcome.how == FAILS:
        yield from [TaskMock("FAILED", {}, work_ms=1000)] * min(max(outcome.times, 0), ENOUGH)
    if outcome.how in (GIVES, FAILS):
        yield from [TaskMock("COMPLETED", given, work_ms=1000)] * ENOUGH
    elif outcome.how == FAILS_FOR_GOOD:
        yield from [TaskMock("FAILED_FOR_GOOD", {}, work_ms=1000)] * ENOUGH
    elif outcome.how == TIMES_OUT:
        yield from [TaskMock("TIMED_OUT", {}, work_ms=1000)] * ENOUGH
