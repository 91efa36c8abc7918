"""Jump to a later step, or skip a step before control reaches it (execution §7.2)."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from ..decision_context import Command, DecisionContext
from ..definition import (
    Flow,
    Key,
    Step,
    StepLevel,
    path_to_step,
    phase_of,
    possible_keys,
    references_inside,
    structure_of,
)
from ..document.reading import INPUT_OVERRIDE_KEY, override_inputs
from ..effects import CreateTask, Effect, ResolveTask, SendMessage, TransitionAttempt, UpdateTask, apply_effects
from ..errors import Busy, Conflict, Invalid, NotAllowedInState, NotFound, StepRefused
from ..masking import masked_names
from ..primitives import fast_replace
from ..rules.advance import assign_branch
from ..secret_places import refuse_redirected_step
from ..snapshot import CONTROL_REMOVED, Run, Task
from ..states import COMPLETED, RUNNING, SKIPPED
from ..step_types import enter, step_type_of
from ..step_types.base import completed_task, new_task, resolve_inputs
from ..step_types.decisions import ChoiceState, case_of_head

REASON = "Skipped by a jump to {}."


def jump_to_step(ref: str, input: Mapping[str, Any] | None = None) -> Command:
    """Return the command that moves control to a step that it has not reached, with `input` over the step's own inputs.

    The steps before the target in its sequence are skipped, or canceled if they are open. The forks, switches and loops
    around the target are entered as if control had reached them. Parallel branches continue.

    Raises:
        NotFound: when the command is applied and the definition has no such step.
        Conflict: when the command is applied and control has already reached or passed the target.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterable[Effect]:
        require_running(run)
        path = path_to_step(run.definition.document.get("tasks") or (), ref)
        if not path:
            raise NotFound(f"Task reference name {ref} is not in workflow {run.definition.name}.")
        way = JumpBuilder(run, ctx, now, ref)
        for level, inner in pairwise(path):
            way.skip_to(level)
            way.enter_container(level.ref, inner)
        way.skip_to(path[-1])
        way.enter_target(dict(input or {}))
        return way.effects

    return command


class JumpBuilder:
    """Collects the effects of a jump while applying them to a snapshot."""

    def __init__(self, run: Run, ctx: DecisionContext, now: int, target: str) -> None:
        self.run, self.ctx, self.now, self.target = run, ctx, now, target
        self.effects: list[Effect] = []
        self.iteration_path: tuple[int, ...] = ()

    def apply(self, effects: Iterable[Effect]) -> None:
        new_effects = list(effects)
        self.effects += new_effects
        self.run = apply_effects(self.run, new_effects)

    def task(self, ref: str) -> Task | None:
        return self.run.tasks.get(Key(ref, self.iteration_path))

    def step(self, ref: str) -> Step:
        return self.run.definition.steps[ref]

    def skip_to(self, level: StepLevel) -> None:
        """Skip the steps before the step of this level in its sequence.

        Raises:
            Conflict: when control has passed the level.
        """
        for ref in level.after:
            task = self.task(ref)
            if task is not None and task.status != SKIPPED and not self._is_join_of(level, task):
                raise Conflict(f"Control has already reached {task.key}. A jump can only go forward.")
        for ref in level.before:
            self._skip_step(ref)

    def _is_join_of(self, level: StepLevel, task: Task) -> bool:
        """Return True for the join of the fork around the target, which waits from the start of the fork."""
        is_next = task.key.ref == level.after[0] and is_join(task.step)
        return is_next and task.is_open and self.task(level.ref) is not None and level.ref != self.target

    def _skip_step(self, ref: str) -> None:
        step, waiting = self.step(ref), [task for task in self.run.open_tasks if self._is_within(task, ref)]
        for task in sorted(waiting, key=lambda task: task.seq, reverse=True):
            self.apply(abandon_task(task, self.now, REASON.format(self.target)))
        for each in (step, *steps_skipped_together(self.run, step, None, but=self.target)):
            if self.task(each.ref) is None and each.ref != self.target:
                key = Key(each.ref, self.iteration_path)
                facts: dict[str, Any] = {"step_state": {CONTROL_REMOVED: True}, "reason": REASON.format(self.target)}
                self.apply([skipped_task(each, key, self.run, self.now, **facts)])

    def _is_within(self, task: Task, ref: str) -> bool:
        anchor = definition_step_of(self.run, task)
        return task.key.iteration_path[: len(self.iteration_path)] == self.iteration_path and (
            anchor == ref
            or anchor in references_inside(self.step(ref).document)
            or anchor == self._dynamic_join_of(ref)
        )

    def _dynamic_join_of(self, ref: str) -> str | None:
        """Return the join that identifies the branches of a dynamic fork, or None."""
        step = self.step(ref)
        return step.follower if structure_of(step.type).flow is Flow.DYNAMIC_FORK else None

    def enter_container(self, ref: str, inner: StepLevel) -> None:
        """Enter the fork, switch or loop around the target, if control has not reached it.

        Raises:
            Conflict: when it was skipped.
        """
        task = self.task(ref)
        if task is not None and task.status == SKIPPED:
            raise Conflict(f"{self.target} is inside {task.key}, which was skipped.")
        structure = structure_of(self.step(ref).type)
        if structure.iterates:
            self._iteration_path(ref, task)
            if structure.item_type:
                self._iteration_path(self.step(ref).heads[0], self.task(self.step(ref).heads[0]))
            if structure.flow is Flow.PHASES:
                self._refuse_another_part(ref, inner)
        elif structure.flow is Flow.CHOICE:
            self._choose(ref, task, inner)
        elif task is None:
            self._enter_container_step(self.step(ref))

    def _enter_container_step(self, step: Step) -> None:
        key = Key(step.ref, self.iteration_path)
        try:
            self.apply(enter(step, key, self._context_at(step, key), self.now))
        except StepRefused as refused:
            raise Invalid(f"{step.ref} cannot be entered: {refused.message}") from refused

    def _context_at(self, step: Step, key: Key) -> DecisionContext:
        return DecisionContext(self.run, self.ctx.data).at(step, key)

    def _iteration_path(self, ref: str, task: Task | None) -> None:
        if task is None:
            self._enter_container_step(self.step(ref))
            task = self.task(ref)
        if task is None or not task.is_open or not task.attempt.is_open:
            raise Conflict(f"{self.target} is inside the loop {ref}, which has ended.")
        self.iteration_path = (*self.iteration_path, task.iteration)

    def _refuse_another_part(self, ref: str, inner: StepLevel) -> None:
        """Refuse a target in a CATCH or FINALLY body that control has not reached."""
        scope = self.run.tasks[Key(ref, self.iteration_path[:-1])]
        if Key((*inner.before, inner.ref)[0], self.iteration_path) not in step_type_of(scope.step.type).successors(
            scope
        ):
            raise Conflict(f"{self.target} is inside a part of {scope.key} that control has not reached.")

    def _choose(self, ref: str, task: Task | None, inner: StepLevel) -> None:
        """Take the case that contains the target, whatever the switch would choose or has chosen."""
        head = (*inner.before, inner.ref)[0]
        if task is not None:
            others = {*references_inside(self.step(ref).document)} - self._inside_case(inner)
            depth = len(self.iteration_path)
            siblings = [each for each in self.run.open_tasks if each.key.iteration_path[:depth] == self.iteration_path]
            for sibling in siblings:
                if definition_step_of(self.run, sibling) in others:
                    self.apply(abandon_task(sibling, self.now, REASON.format(self.target)))
            state = step_type_of(task.step.type).enter_case(task, head)
            self.apply([UpdateTask(task.key, {"step_state": state})])
            return
        step, key = self.step(ref), Key(ref, self.iteration_path)
        case = case_of_head(step, head)
        inputs = resolve_inputs(step, self._context_at(step, key), key, self.run, self.now)
        facts: dict[str, Any] = {"input": {**inputs, "case": case, "hasChildren": "true"}}
        output = {"evaluationResult": [case], "selectedCase": case}
        self.apply(
            [completed_task(step, key, self.run, self.now, step_state=ChoiceState(head=head), output=output, **facts)]
        )

    def _inside_case(self, inner: StepLevel) -> set[str]:
        refs = (*inner.before, inner.ref, *inner.after)
        return {each for ref in refs for each in (ref, *references_inside(self.step(ref).document))}

    def enter_target(self, given: dict[str, Any]) -> None:
        """Enter the target itself.

        Raises:
            Conflict: when control has already reached it.
            Invalid: when its secrets would go to another receiver.
        """
        if (reached := self.task(self.target)) is not None:
            raise Conflict(f"Control has already reached {reached.key}. A jump can only go forward.")
        refuse_redirected_step(self.step(self.target), given, has_masked=bool(masked_names(self.run.definition)))
        step = override_inputs(self.step(self.target), given)
        self._enter_container_step(step)
        if given and (task := self.task(self.target)):
            self.apply([UpdateTask(task.key, {"step_state": {**task.step_state, INPUT_OVERRIDE_KEY: given}})])


def abandon_task(task: Task, now: int, reason: str) -> Iterator[Effect]:
    """Skip an open task: cancel its attempt and its child run. Control does not leave it."""
    if task.attempt.is_open:
        yield TransitionAttempt(task.key, "cancel", now, {"reason": reason})
        if task.attempt.child_id:
            yield SendMessage(task.attempt.child_id, "terminate", {"reason": reason})
    yield UpdateTask(task.key, {"step_state": {**task.step_state, CONTROL_REMOVED: True}})
    yield ResolveTask(task.key, "skip")


def definition_step_of(run: Run, task: Task) -> str:
    """Return the step of the definition that a task belongs to; for a dynamic branch, the join that waits for it."""
    while task.branch_head and (head := run.tasks.get(task.branch_head)) and head.joined_by:
        join = run.tasks.get(Key(head.joined_by, head.key.iteration_path))
        if run.definition.step(head.joined_by) or join is None:
            return head.joined_by
        task = join
    return task.key.ref


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


def skip_step(ref: str, input: Mapping[str, Any] | None = None, output: Mapping[str, Any] | None = None) -> Command:
    """Return the command that creates the task of a later step as SKIPPED, with this input and output.

    Control continues with the next step. A fork is skipped with its branches and its join; a loop, a switch and a
    sub-workflow with everything inside.

    Raises:
        Conflict: when the command is applied and the step has a task.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        require_running(run)
        place = _find_step_position(run, ref)
        if place.key in run.tasks:
            raise Conflict(f"Task {place.key} of workflow {run.id} cannot be skipped: it has already been scheduled.")
        yield skipped_task(place.step, place.key, run, now, place.source, dict(input or {}), dict(output or {}))
        for step in steps_skipped_together(run, place.step, place.source):
            if (key := Key(step.ref, place.key.iteration_path)) not in run.tasks:
                yield skipped_task(step, key, run, now, place.source)

    return command


def skipped_task(
    step: Step,
    key: Key,
    run: Run,
    now: int,
    source: Task | None = None,
    input: dict[str, Any] | None = None,
    output: dict[str, Any] | None = None,
    **facts: Any,
) -> CreateTask:
    payloads: dict[str, Any] = {"input": input or {}, "output": output or {}}
    task = new_task(step, key, run, now, status=COMPLETED, started_at=now, ended_at=now, **payloads, **facts)
    effect = CreateTask(fast_replace(task, status=SKIPPED))
    return effect if source is None else assign_branch(effect, source)


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


def _find_step_position(run: Run, name: str) -> StepPosition:
    """Return the position for a name: `a` in the current iteration, `a__2` in iteration 2."""
    for ref, iteration_path in possible_keys(name):
        found = _find_step(run, ref)
        if found is not None and (not iteration_path or len(iteration_path) == len(found[0].loops)):
            step, source = found
            if iteration_path:
                _check_iterations(run, step, iteration_path)
            return StepPosition(step, Key(ref, iteration_path or _current_iteration_path(run, step)), source)
    raise NotFound(f"Task reference name {name} is not in workflow {run.definition.name}.{run.definition.version}.")


def _find_step(run: Run, ref: str) -> tuple[Step, Task | None] | None:
    if (step := run.definition.step(ref)) and step.document:
        return step, None
    tasks = [task for task in run.tasks.values() if task.branch_head and ref in task.branch_steps]
    if not tasks:
        return None
    newest = max(tasks, key=lambda task: task.seq)
    return newest.branch_steps[ref], run.tasks.get(newest.branch_head or newest.key, newest)


def _current_iteration_path(run: Run, step: Step) -> tuple[int, ...]:
    """Return the iteration path in which control will next reach the step."""
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


def _check_iterations(run: Run, step: Step, iteration_path: tuple[int, ...]) -> None:
    for place, ref in enumerate(step.loops):
        loop = run.tasks.get(Key(ref, iteration_path[:place]))
        if iteration_path[place] < 1 or (
            loop is not None and (not loop.is_open or _is_past(loop, iteration_path[place]))
        ):
            raise Conflict(f"Iteration {iteration_path[place]} of the loop {Key(ref, iteration_path[:place])} is over.")
        if (phase := _phase_for(run, step, ref, loop)) not in (None, iteration_path[place]):
            raise Conflict(f"{ref} executes {step.ref} in iteration {phase}, not {iteration_path[place]}.")


def _is_past(loop: Task, iteration: int) -> bool:
    return step_type_of(loop.step.type).iterations_are_sequential(loop) and iteration < loop.iteration
