"""What an operator means by a reference: which step, and in which turn of the loops around it."""

import re
from typing import NamedTuple

from ..definition import Key, Step
from ..errors import Busy, Conflict, NotAllowedInState, NotFound
from ..nesting import inside, phase_in
from ..snapshot import Run, Task
from ..states import RUNNING
from ..step_types import kind_of

JOINS = ("JOIN", "EXCLUSIVE_JOIN")
TURN = re.compile(r"(.+)__(\d{1,9})", re.DOTALL)


class Place(NamedTuple):
    """A step in one turn. `source`: for a step that only a dynamic branch has, the task that heads the branch."""

    step: Step
    key: Key
    source: Task | None


def refuse_unless_running(run: Run) -> None:
    """A detour is taken by a run that is under way."""
    if run.status != RUNNING:
        raise NotAllowedInState(f"Workflow {run.id} is {run.status}: this can only be done while it is RUNNING.")
    if not run.has_begun:
        raise Busy(f"Workflow {run.id} has not begun yet; try again in a moment.")


def find_place(run: Run, name: str) -> Place:
    """The place that a name means: `a` in the present turn of the loops around it, `a__2` in that turn."""
    for ref, turn in _readings(name):
        found = _find_step(run, ref)
        if found is not None and (turn is None or len(turn) == len(found[0].loops)):
            step, source = found
            return Place(step, Key(ref, present_turn(run, step) if turn is None else _checked(run, step, turn)), source)
    raise NotFound(f"Task reference name {name} is not in workflow {run.definition.name}.{run.definition.version}.")


def _readings(name: str):
    yield name, None
    turn: tuple[int, ...] = ()
    while found := TURN.fullmatch(name):
        name, turn = found[1], (int(found[2]), *turn)
        yield name, turn


def _find_step(run: Run, ref: str) -> tuple[Step, Task | None] | None:
    if (step := run.definition.step(ref)) and step.document:
        return step, None
    tasks = [task for task in run.tasks.values() if task.root and ref in task.grown]
    if not tasks:
        return None
    newest = max(tasks, key=lambda task: task.seq)
    return newest.grown[ref], run.tasks.get(newest.root or newest.key, newest)


def present_turn(run: Run, step: Step) -> tuple[int, ...]:
    """The turn in which the loops around a step are now, or will be when they come to it."""
    turn: tuple[int, ...] = ()
    for ref in step.loops:
        loop = run.tasks.get(Key(ref, turn))
        if loop is not None and not loop.is_open:
            raise Conflict(f"The loop {loop.key} is over: {step.ref} will not be reached in it again.")
        present = loop.iteration if loop else 1
        part = _part_of(run, step, ref, loop)
        if part is not None and part < present:
            raise Conflict(f"{ref} has gone on: {step.ref} will not be reached in it again.")
        turn = (*turn, part or present)
    return turn


def _part_of(run: Run, step: Step, ref: str, loop: Task | None) -> int | None:
    """The turn of a step with parts in which it does what is inside it."""
    around = run.step(ref, loop)
    return phase_in(around.document, step.ref) if around else None


def _checked(run: Run, step: Step, turn: tuple[int, ...]) -> tuple[int, ...]:
    for place, ref in enumerate(step.loops):
        loop = run.tasks.get(Key(ref, turn[:place]))
        if turn[place] < 1 or (loop is not None and (not loop.is_open or _is_past(loop, turn[place]))):
            raise Conflict(f"Turn {turn[place]} of the loop {Key(ref, turn[:place])} is over.")
        if (part := _part_of(run, step, ref, loop)) not in (None, turn[place]):
            raise Conflict(f"{step.ref} is done in turn {part} of {ref}, never in turn {turn[place]}.")
    return turn


def _is_past(loop: Task, turn: int) -> bool:
    return kind_of(loop.step.type).turns_follow(loop) and turn < loop.iteration


def goes_with(run: Run, step: Step, source: Task | None, but: str = "") -> list[Step]:
    """The steps that must be passed over together with this one; `but` is to be entered.

    The join of what is inside it, which nobody would reach; and steps inside it that some other join waits for.
    """
    refs = inside(step.document)
    join = run.step(step.follower, source) if step.follower else None
    own = [join] if join is not None and join.ref != but and _joins_only(join, step, refs) else []
    known = [found for ref in refs if (found := run.step(ref, source))]
    unseen = {*refs, *(each.ref for each in own)}
    return own + [each for each in known if each.loops == step.loops and set(each.joined_by) - unseen]


def _joins_only(join: Step, step: Step, refs: tuple[str, ...]) -> bool:
    if join.type not in JOINS:
        return False
    return step.type in ("FORK_JOIN", "FORK_JOIN_DYNAMIC") or (bool(join.joins) and set(join.joins) <= set(refs))
