"""Continue an ended run from a task, or from its start, as if the later tasks had never existed (execution §7.4)."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from ..decision_context import DecisionContext
from ..definition import Key
from ..effects import CreateTask, Effect, TransitionRun, apply_effects
from ..errors import Invalid, NotAllowedInState
from ..primitives import fast_replace
from ..rules.advance import enter_step, enter_together, pending_entries
from ..rules.finish import is_failure_handled
from ..secret_places import SECRET_PLACES, Keys, Place, kept_places, places_of, refuse_new_receiver
from ..snapshot import Identity, Run, Task
from ..step_types import step_type_of
from . import reopen


class EarlierAttempt(NamedTuple):
    """An attempt of the task, not necessarily its newest one. The task continues under its id and number."""

    id: str
    number: int
    seq: int
    previous_id: str
    worker: str


@dataclass(frozen=True, slots=True)
class Rerun:
    """Command that reruns a run.

    `key`: the task to rerun from, None for the start. Fields that are None stay unchanged. `attempt`: the attempt that
    the caller named; later attempts are deleted. `restored`: the paths of the masked values that `task_input` keeps of
    that attempt. `asked`: if the task was found in a child run, the run that the
    operator named and the new facts for that run.
    """

    key: Key | None = None
    attempt: EarlierAttempt | None = None
    task_input: dict[str, Any] | None = None
    input: dict[str, Any] | None = None
    correlation_id: str | None = None
    asked: dict[str, Any] = field(default_factory=dict)
    restored: Collection[Keys] = ()

    def __call__(self, run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if run.is_open:
            raise NotAllowedInState(f"Workflow {run.id} is {run.status}. Only an ended workflow can be rerun.")
        reopen.require_whole_run(run)
        new = {"input": self.input, "correlation_id": self.correlation_id}
        facts = {
            **reopen.reopened_run_facts(run, now),
            **{name: value for name, value in new.items() if value is not None},
        }
        if self.key is None:
            yield TransitionRun("rerun", now, {**facts, "next_seq": 1})
            yield from reopen.delete_tasks(run, run.tasks)
        else:
            yield from self._rerun_from_task(self.key, run, ctx, facts, now)
        yield from reopen.notify_parent(run, "rerun", self.asked)

    def _rerun_from_task(
        self, key: Key, run: Run, ctx: DecisionContext, facts: dict[str, Any], now: int
    ) -> Iterator[Effect]:
        if key not in run.tasks:
            raise Invalid(f"Workflow {run.id} has no task {key} any more. It was deleted in the meantime.")
        plan = RerunPlan(run, key)
        identities = {again: _task_identity(run.tasks[again]) for again in plan.again}
        if self.attempt is not None:
            identities[key] = _identity_of_attempt(run, run.tasks[key], self.attempt)
        facts = {**facts, "next_seq": _next_seq(run, plan.gone, identities)}
        effects: list[Effect] = [TransitionRun("rerun", now, facts), *reopen.delete_tasks(run, plan.gone)]
        # A loop that is opened again reads the state of the run after these effects, such as its new input.
        after = apply_effects(run, effects)
        effects += reopen.reopen_tasks(after, plan.waiting, DecisionContext(after, ctx.data), now, resumes=True)
        yield from effects
        given = {} if self.task_input is None else {key: self.task_input}
        places = self._kept_places(run.tasks[key], ctx)
        after = fast_replace(apply_effects(run, effects), identities=identities)
        seen = DecisionContext(after, ctx.data, given)
        for effect in _reenter_steps(run, after, plan.again, seen, now):
            yield _apply_input_override(effect, seen, places)

    def _kept_places(self, task: Task, ctx: DecisionContext) -> list[Place]:
        """Return the places in the new input of the task at which its secrets stay."""
        if self.task_input is None or not (task.step.secrets or self.restored):
            return []
        newest = ctx.attempt_payload(task, "input")
        places = kept_places(places_of(task, newest), newest, self.task_input)
        refuse_new_receiver(task.step, newest, self.task_input, [tuple(keys) for keys, _ in places])
        if self.restored:
            named = ctx.input_of_attempt(task.key, self.attempt.id) if self.attempt else newest
            refuse_new_receiver(task.step, named, self.task_input, self.restored)
        return places


def _task_identity(task: Task) -> Identity:
    """Return the ids by which clients know the task and its newest attempt."""
    attempt = task.attempt
    return Identity(task.id, task.seq, attempt.id, attempt.seq, attempt.number, attempt.previous_id, task.all_workers)


def _identity_of_attempt(run: Run, task: Task, named: EarlierAttempt) -> Identity:
    """Return the identity of the task under the id of the attempt that the caller named."""
    is_newest = named.id == task.attempt.id
    if not is_newest and named.number >= task.attempt.number:
        raise Invalid(f"Workflow {run.id} has no attempt {named.id} of task {task.key} any more.")
    if is_newest:
        return _task_identity(task)
    workers = tuple(dict.fromkeys((*task.all_workers, *filter(None, [named.worker]))))
    return Identity(task.id, task.seq, named.id, named.seq, named.number, named.previous_id, workers)


def _next_seq(run: Run, gone: Collection[Key], identities: Mapping[Key, Identity]) -> int:
    """Return the number after the highest one that is left. Conductor numbers the tasks that follow in this way."""
    kept = [_task_identity(task) for key, task in run.tasks.items() if key not in gone and key not in identities]
    return 1 + max(max(each.task_seq, each.attempt_seq) for each in (*kept, *identities.values()))


class RerunPlan:
    """The tasks that a rerun deletes (`gone`), opens again (`waiting`) and creates again at once (`again`)."""

    def __init__(self, run: Run, key: Key) -> None:
        trail = reopen.Downstream(run, key)
        self.gone, self.waiting, self.again = trail.gone, trail.waiting, [key]
        self._undo_terminations(run)
        self._retry_other_failures(run)

    def _undo_terminations(self, run: Run) -> None:
        """Delete what led to another TERMINATE as well, because it would end the run again at once."""
        target = self.again[0]
        for end in sorted(reopen.terminate_tasks(run), key=reopen.creation_order):
            if end.key not in self.gone:
                self._add(reopen.Downstream(run, reopen.find_restart_point(run, end, spared=target).key))

    def _retry_other_failures(self, run: Run) -> None:
        """Retry other failed tasks, unless the run has already continued after them."""
        for task in reopen.failed_tasks(run):
            if task.key in self.gone or task.key in self.waiting or is_failure_handled(run, task, self.waiting):
                continue
            if reopen.is_reopened(task):
                self.waiting[task.key] = step_type_of(task.step.type).failed_iteration(task)
                self.gone |= reopen.superseded_keys(run, task)
            elif self._was_continued_past(run, task):
                continue
            elif reopen.is_resumable(task):
                self.waiting[task.key] = None
            else:
                self.gone.add(task.key)
                self.again.append(task.key)

    def _was_continued_past(self, run: Run, task: Task) -> bool:
        """Return True if the run continued after a permitted failure, and no join or loop reads it again."""
        went_on = any(key in run.tasks for key in step_type_of(task.step.type).successors(task))
        return went_on and not any(key in self.waiting for key in reopen.waiting_keys(task))

    def _add(self, trail: reopen.Downstream) -> None:
        self.gone |= trail.gone
        self.waiting = {
            key: iteration for key, iteration in {**trail.waiting, **self.waiting}.items() if key not in self.gone
        }
        self.again = [key for key in self.again if key not in trail.gone] + [trail.start]


def _reenter_steps(run: Run, after: Run, keys: Collection[Key], ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Enter the steps of these tasks again: evaluate inputs, decide switches, create branches."""
    sources = {key: source for key, source in pending_entries(after) if key in keys}
    old = {key: run.tasks[key] for key in keys}
    effects = enter_together(
        partial(enter_step, key, _entry_source(task, sources.get(key), after), ctx, now) for key, task in old.items()
    )
    yield from effects


def _entry_source(task: Task, source: Task | None, after: Run) -> Task | None:
    """Return the task that control comes from, with the steps of its branches, which its row does not contain."""
    source = source or (after.tasks.get(task.branch_head) if task.branch_head else None)
    return (
        fast_replace(source, branch_steps={**source.branch_steps, **task.branch_steps})
        if source and task.branch_head
        else source
    )


def _apply_input_override(effect: Effect, ctx: DecisionContext, places: list[Place]) -> Effect:
    """Store an input that an operator set in the step state, so that later attempts use it as well."""
    if isinstance(effect, CreateTask) and (given := ctx.given.get(effect.task.key)) is not None:
        state = {
            **effect.task.step_state,
            "input": given,
            **({SECRET_PLACES: places} if effect.task.step.secrets else {}),
        }
        return CreateTask(fast_replace(effect.task, step_state=state))
    return effect
