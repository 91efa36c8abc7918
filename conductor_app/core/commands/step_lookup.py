"""Resolve a reference name that an operator gives to a step and an iteration."""

from typing import NamedTuple

from ..definition import Key, Step, possible_keys
from ..errors import Busy, Conflict, NotAllowedInState, NotFound
from ..snapshot import Run, Task
from ..states import RUNNING
from ..step_structure import Flow, structure_of
from ..step_tree import phase_of, references_inside
from ..step_types import step_type_of


class StepPosition(NamedTuple):
    """A step in one iteration path. `source`: the head of the branch, if only a dynamic branch has the step."""

    step: Step
    key: Key
    source: Task | None


def require_running(run: Run) -> None:
    """Require a run that is running and has started.

    Raises:
        NotAllowedInState: when the run is not RUNNING.
        Busy: when the run has not started.
    """
    if run.status != RUNNING:
        raise NotAllowedInState(f"Workflow {run.id} is {run.status}. This operation requires a RUNNING workflow.")
    if not run.has_begun:
        raise Busy(f"Workflow {run.id} has not started yet. Try again later.")


def find_step_position(run: Run, name: str) -> StepPosition:
    """Return the position for a name: `a` in the current iteration, `a__2` in iteration 2.

    Raises:
        NotFound: when the run has no such step.
        Conflict: when the iteration is over.
    """
    for ref, iteration_path in possible_keys(name):
        found = _find_step(run, ref)
        if found is not None and (not iteration_path or len(iteration_path) == len(found[0].loops)):
            step, source = found
            return StepPosition(
                step,
                Key(
                    ref,
                    current_iteration_path(run, step)
                    if not iteration_path
                    else _check_iterations(run, step, iteration_path),
                ),
                source,
            )
    raise NotFound(f"Task reference name {name} is not in workflow {run.definition.name}.{run.definition.version}.")


def _find_step(run: Run, ref: str) -> tuple[Step, Task | None] | None:
    if (step := run.definition.step(ref)) and step.document:
        return step, None
    tasks = [task for task in run.tasks.values() if task.branch_head and ref in task.branch_steps]
    if not tasks:
        return None
    newest = max(tasks, key=lambda task: task.seq)
    return newest.branch_steps[ref], run.tasks.get(newest.branch_head or newest.key, newest)


def current_iteration_path(run: Run, step: Step) -> tuple[int, ...]:
    """Return the iteration path in which control will next reach the step.

    Raises:
        Conflict: when an enclosing loop has ended or passed the step.
    """
    iteration_path: tuple[int, ...] = ()
    for ref in step.loops:
        loop = run.tasks.get(Key(ref, iteration_path))
        if loop is not None and not loop.is_open:
            raise Conflict(f"The loop {loop.key} has ended. Control will not reach {step.ref} in it again.")
        present = loop.iteration if loop else 1
        phase = _phase_for(run, step, ref, loop)
        if phase is not None and phase < present:
            raise Conflict(f"{ref} has continued. Control will not reach {step.ref} in it again.")
        iteration_path = (*iteration_path, phase or present)
    return iteration_path


def _phase_for(run: Run, step: Step, ref: str, loop: Task | None) -> int | None:
    """Return the phase of the enclosing step in which it executes `step`, or None."""
    enclosing = run.step(ref, loop)
    return phase_of(enclosing.document, step.ref) if enclosing else None


def _check_iterations(run: Run, step: Step, iteration_path: tuple[int, ...]) -> tuple[int, ...]:
    for place, ref in enumerate(step.loops):
        loop = run.tasks.get(Key(ref, iteration_path[:place]))
        if iteration_path[place] < 1 or (
            loop is not None and (not loop.is_open or _is_past(loop, iteration_path[place]))
        ):
            raise Conflict(f"Iteration {iteration_path[place]} of the loop {Key(ref, iteration_path[:place])} is over.")
        if (phase := _phase_for(run, step, ref, loop)) not in (None, iteration_path[place]):
            raise Conflict(f"{ref} executes {step.ref} in iteration {phase}, not {iteration_path[place]}.")
    return iteration_path


def _is_past(loop: Task, iteration: int) -> bool:
    return step_type_of(loop.step.type).iterations_are_sequential(loop) and iteration < loop.iteration


def steps_skipped_together(run: Run, step: Step, source: Task | None, but: str = "") -> list[Step]:
    """Return the steps that must be skipped together with this one, except the step `but`.

    These are the join of the steps inside it, which control would never reach, and steps inside it that another join
    waits for.
    """
    refs = references_inside(step.document)
    join = run.step(step.follower, source) if step.follower else None
    own = [join] if join is not None and join.ref != but and _joins_only(join, step, refs) else []
    known = [found for ref in refs if (found := run.step(ref, source))]
    unseen = {*refs, *(each.ref for each in own)}
    return own + [each for each in known if each.loops == step.loops and set(each.joined_by) - unseen]


def _joins_only(join: Step, step: Step, refs: tuple[str, ...]) -> bool:
    if not is_join(join):
        return False
    return structure_of(step.type).forks or (bool(join.joins) and set(join.joins) <= set(refs))


def is_join(step: Step) -> bool:
    """Return True if the step waits for other steps that it names."""
    return structure_of(step.type).flow is Flow.JOIN
