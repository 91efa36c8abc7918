"""Outcomes that a user sets for the tasks of a test run, and the script made from them."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..step_structure import structure_of_step
from ..step_tree import StepSpot, walk
from .simulated_run import SimulationScript, TaskMock

GIVES, FAILS, FAILS_FOR_GOOD, TIMES_OUT, STAYS = "gives", "fails", "fails_for_good", "times_out", "stays"
SIMULATED_TYPES = "played"
KINDS_OF_OUTCOMES = {
    GIVES: "completes with",
    FAILS: "fails, then completes with",
    FAILS_FOR_GOOD: "fails without retry",
    TIMES_OUT: "times out",
    STAYS: "stays open",
    SIMULATED_TYPES: "is simulated as well",
}
INSIDE = ">"
"""Separator between the reference of a sub-workflow's step and the reference of a step inside it."""
ENOUGH = 300
"""Number of attempts of one step that get an outcome. A loop uses one per iteration."""


class SimulatedOutcome(NamedTuple):
    """Outcome of one step: how it ends, how often it fails before, and its output."""

    how: str = GIVES
    times: int = 1
    output: Any = None


def steps_needing_outcome(document: Mapping[str, Any]) -> Iterator[StepSpot]:
    """Yield the steps whose outcome the user must set. A dynamic fork stands for its branches."""
    for spot in walk(document.get("tasks")):
        if spot.ref and structure_of_step(spot.step).needs_simulated_result(spot.step):
            yield spot


def build_script(outcomes: Mapping[str, SimulatedOutcome]) -> SimulationScript:
    """Return the script with these outcomes for every iteration of the steps. `sub>ref` is a step of a sub-workflow."""
    own = {ref: outcome for ref, outcome in outcomes.items() if INSIDE not in ref}
    mocks = {ref: found for ref, outcome in own.items() if (found := tuple(_task_mocks(outcome)))}
    children = {
        ref: build_script(outcomes_inside(outcomes, ref))
        for ref, outcome in own.items()
        if outcome.how == SIMULATED_TYPES
    }
    # The outcome of a dynamic fork applies to each task that it creates.
    return SimulationScript(mocks, children, branches=mocks)


def outcomes_inside(outcomes: Mapping[str, SimulatedOutcome], ref: str) -> dict[str, SimulatedOutcome]:
    """Return the outcomes for the steps of a sub-workflow, by their references in it."""
    begin = f"{ref}{INSIDE}"
    return {name.removeprefix(begin): outcome for name, outcome in outcomes.items() if name.startswith(begin)}


def _task_mocks(outcome: SimulatedOutcome) -> Iterator[TaskMock]:
    output = outcome.output if isinstance(outcome.output, dict) else {}
    if outcome.how == FAILS:
        yield from [TaskMock("FAILED", {}, work_ms=1000)] * min(max(outcome.times, 0), ENOUGH)
    if outcome.how in (GIVES, FAILS):
        yield from [TaskMock("COMPLETED", output, work_ms=1000)] * ENOUGH
    elif outcome.how == FAILS_FOR_GOOD:
        yield from [TaskMock("FAILED_FOR_GOOD", {}, work_ms=1000)] * ENOUGH
    elif outcome.how == TIMES_OUT:
        yield from [TaskMock("TIMED_OUT", {}, work_ms=1000)] * ENOUGH
