"""Go on at a step further on: what lies between is passed over."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect, ResolveTask, SendMessage, TransitionAttempt, UpdateTask, apply_effects
from ..errors import Conflict, Invalid, NotFound, StepRefused
from ..input_overrides import INPUT_OVERRIDE_KEY, override_inputs
from ..snapshot import CONTROL_REMOVED, Run, Task
from ..states import SKIPPED
from ..step_structure import Flow, structure_of
from ..step_tree import StepLevel, path_to_step, references_inside
from ..step_types import step_type_of
from ..step_types.base import completed_task, resolve_inputs
from ..step_types.cases import ChoiceState, case_of_head
from .skip import skipped_task
from .step_lookup import is_join, require_running, steps_skipped_together

REASON = "Passed over by a jump to {}."


def jump_to_step(ref: str, input: Mapping[str, Any] | None = None):
    """The command that takes control to a step that it has not come to yet, with these inputs over its own.

    Steps before it, on its own way, become SKIPPED: made so where they have no task, given up where they are open. The
    forks, switches and loops that it lies in are entered as if control had come to them; branches beside its own go on.
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
    """The way from where a run stands to a step: what has been asked for so far, and the run as it is then."""

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
        """Come to the step of this level: what comes before it in its sequence is passed over."""
        for ref in level.after:
            task = self.task(ref)
            if task is not None and task.status != SKIPPED and not self._is_join_of(level, task):
                raise Conflict(f"Control has come to {task.key} already: a jump leads forward only.")
        for ref in level.before:
            self._skip_step(ref)

    def _is_join_of(self, level: StepLevel, task: Task) -> bool:
        """The join of the fork that the target lies in: it waits from the moment on that the fork begins."""
        is_next = task.key.ref == level.after[0] and is_join(task.step)
        return is_next and task.is_open and self.task(level.ref) is not None and level.ref != self.target

    def _skip_step(self, ref: str) -> None:
        step, waiting = self.step(ref), [task for task in self.run.open_tasks if self._is_within(task, ref)]
        for task in sorted(waiting, key=lambda task: task.seq, reverse=True):
            self.apply(abandon_task(task, self.now, REASON.format(self.target)))
        for each in (step, *steps_skipped_together(self.run, step, None, but=self.target)):
            if self.task(each.ref) is None and each.ref != self.target:
                key = Key(each.ref, self.iteration_path)
                self.apply(
                    [
                        skipped_task(
                            each,
                            key,
                            self.run,
                            self.now,
                            step_state={CONTROL_REMOVED: True},
                            reason=REASON.format(self.target),
                        )
                    ]
                )

    def _is_within(self, task: Task, ref: str) -> bool:
        anchor = definition_step_of(self.run, task)
        return task.key.iteration_path[: len(self.iteration_path)] == self.iteration_path and (
            anchor == ref
            or anchor in references_inside(self.step(ref).document)
            or anchor == self._dynamic_join_of(ref)
        )

    def _dynamic_join_of(self, ref: str) -> str | None:
        """The join by which the branches of a dynamic fork are known."""
        step = self.step(ref)
        return step.follower if structure_of(step.type).flow is Flow.DYNAMIC_FORK else None

    def enter_container(self, ref: str, inner: StepLevel) -> None:
        """Enter the fork, switch or loop that the target lies in, if control has not."""
        task = self.task(ref)
        if task is not None and task.status == SKIPPED:
            raise Conflict(f"{self.target} lies in {task.key}, which was skipped.")
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
            self.apply(step_type_of(step.type).enter(step, key, self._context_at(step, key), self.now))
        except StepRefused as refused:
            raise Invalid(f"{step.ref} cannot be entered: {refused.message}") from refused

    def _context_at(self, step: Step, key: Key) -> DecisionContext:
        return DecisionContext(self.run, self.ctx.data).at(step, key)

    def _iteration_path(self, ref: str, task: Task | None) -> None:
        if task is None:
            self._enter_container_step(self.step(ref))
            task = self.task(ref)
        if task is None or not task.is_open or not task.attempt.is_open:
            raise Conflict(f"{self.target} lies in the loop {ref}, which has no turn left.")
        self.iteration_path = (*self.iteration_path, task.iteration)

    def _refuse_another_part(self, ref: str, inner: StepLevel) -> None:
        """What is done after a failure, or at the end, is not jumped to before its time."""
        scope = self.run.tasks[Key(ref, self.iteration_path[:-1])]
        if Key((*inner.before, inner.ref)[0], self.iteration_path) not in step_type_of(scope.step.type).successors(
            scope
        ):
            raise Conflict(f"{self.target} lies in a part of {scope.key} that control has not come to.")

    def _choose(self, ref: str, task: Task | None, inner: StepLevel) -> None:
        """The case that the target lies in is taken, whatever the switch would choose or has chosen."""
        head = (*inner.before, inner.ref)[0]
        if task is not None:
            others = {*references_inside(self.step(ref).document)} - self._inside_case(inner)
            for other in [
                t
                for t in self.run.open_tasks
                if t.key.iteration_path[: len(self.iteration_path)] == self.iteration_path
            ]:
                if definition_step_of(self.run, other) in others:
                    self.apply(abandon_task(other, self.now, REASON.format(self.target)))
            state = step_type_of(task.step.type).enter_case(task, head)
            self.apply([UpdateTask(task.key, {"step_state": state})])
            return
        step, key = self.step(ref), Key(ref, self.iteration_path)
        case = case_of_head(step, head)
        inputs = resolve_inputs(step, self._context_at(step, key), key, self.run, self.now)
        shown: dict[str, Any] = {"input": {**inputs, "case": case, "hasChildren": "true"}}
        output = {"evaluationResult": [case], "selectedCase": case}
        self.apply(
            [completed_task(step, key, self.run, self.now, step_state=ChoiceState(head=head), output=output, **shown)]
        )

    def _inside_case(self, inner: StepLevel) -> set[str]:
        refs = (*inner.before, inner.ref, *inner.after)
        return {each for ref in refs for each in (ref, *references_inside(self.step(ref).document))}

    def enter_target(self, given: dict[str, Any]) -> None:
        """Enter the target itself."""
        if (there := self.task(self.target)) is not None:
            raise Conflict(f"Control has come to {there.key} already: a jump leads forward only.")
        step = override_inputs(self.step(self.target), given)
        self._enter_container_step(step)
        if given and (task := self.task(self.target)):
            self.apply([UpdateTask(task.key, {"step_state": {**task.step_state, INPUT_OVERRIDE_KEY: given}})])


def abandon_task(task: Task, now: int, reason: str) -> Iterator[Effect]:
    """An open task is passed over: nobody works on it any more, and it leads nowhere."""
    if task.attempt.is_open:
        yield TransitionAttempt(task.key, "cancel", now, {"reason": reason})
        if task.attempt.child_id:
            yield SendMessage(task.attempt.child_id, "terminate", {"reason": reason})
    yield UpdateTask(task.key, {"step_state": {**task.step_state, CONTROL_REMOVED: True}})
    yield ResolveTask(task.key, "skip")


def definition_step_of(run: Run, task: Task) -> str:
    """The step of the definition that a task belongs to; of a dynamic branch, the join that waits for it."""
    while task.branch_head and (head := run.tasks.get(task.branch_head)) and head.joined_by:
        join = run.tasks.get(Key(head.joined_by, head.key.iteration_path))
        if run.definition.step(head.joined_by) or join is None:
            return head.joined_by
        task = join
    return task.key.ref
