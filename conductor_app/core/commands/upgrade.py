"""Upgrade a running workflow to another version of its definition."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..decision_context import Command, DecisionContext
from ..definition import Definition, Flow, Key, Step, StepLevel, path_to_step, phase_of, references_inside, structure_of
from ..document.reading import restore_step
from ..effects import Effect, SwitchDefinition, UpdateRun, UpdateTask, apply_effects
from ..errors import Conflict, Invalid
from ..masking import mask_encrypt, masked_names, restore_named, restored_paths
from ..primitives import fast_replace
from ..rules.advance import enter_step
from ..secret_places import path_text, receiver_from_data
from ..snapshot import CONTROL_REMOVED, Run, Task
from ..states import SKIPPED
from ..step_types import step_type_of
from .jump import abandon_task, definition_step_of, is_join, require_running, skipped_task, steps_skipped_together


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """Preview of an upgrade, for pages and for the command.

    `kept`: tasks whose steps are in both versions. `completed`: steps before the run's position without tasks; they
    become SKIPPED, with the given outputs. `canceled`: open tasks whose steps are removed. `problems`: why the upgrade
    is refused.
    """

    definition: Definition
    kept: tuple[Key, ...] = ()
    completed: tuple[Key, ...] = ()
    canceled: tuple[Key, ...] = ()
    problems: tuple[str, ...] = field(default=())


def upgrade_run(
    definition: Definition, outputs: Mapping[str, Any] | None = None, input: Mapping[str, Any] | None = None
) -> Command:
    """Return the command that upgrades a run to this definition at its current position.

    Raises:
        Conflict: when the command is applied and the plan has problems, with all of them in the message.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterable[Effect]:
        require_running(run)
        plan = plan_upgrade(run, definition)
        if plan.problems:
            raise Conflict(
                f"Workflow {run.id} cannot be upgraded to version {definition.version}: {' '.join(plan.problems)}"
            )
        return _upgrade_effects(run, ctx, now, plan, outputs or {}, input)

    return command


def plan_upgrade(run: Run, definition: Definition) -> UpgradePlan:
    """Return the plan of an upgrade to this definition.

    Raises:
        Invalid: when the definition has another name.
    """
    if definition.name != run.definition.name:
        raise Invalid(
            f"Workflow {run.id} is a {run.definition.name} workflow. It can only be upgraded to another version of it."
        )
    tasks = sorted((task for task in run.tasks.values() if not task.branch_head), key=lambda task: task.seq)
    removed = {task.key for task in tasks if definition.step(task.key.ref) is None}
    kept = [task for task in tasks if task.key not in removed]
    forked = [task for task in run.open_tasks if task.branch_head and _has_lost_join(run, task, definition)]
    levels = {task.key: path_to_step(definition.document.get("tasks") or (), task.key.ref) for task in kept}
    return UpgradePlan(
        definition,
        tuple(task.key for task in kept),
        tuple(_completed_steps(run, definition, kept, levels)),
        tuple(task.key for task in [*tasks, *forked] if task.is_open and (task.key in removed or task.branch_head)),
        tuple(_upgrade_problems(run, definition, kept, levels)),
    )


def _has_lost_join(run: Run, task: Task, definition: Definition) -> bool:
    """Return True if the new version has no join for this task of a dynamic branch."""
    return definition.step(definition_step_of(run, task)) is None


Levels = Mapping[Key, tuple[StepLevel, ...]]


def _completed_steps(run: Run, definition: Definition, kept: list[Task], levels: Levels) -> list[Key]:
    """Return the keys of steps before the run's position that have no task."""
    found: dict[Key, None] = {}
    after = Run(run.id, definition, run.status, run.created_at)
    for task in kept:
        if task.status == SKIPPED:
            continue
        for level in levels[task.key]:
            iteration_path = task.key.iteration_path[: len(definition.steps[level.ref].loops)]
            for ref in level.before:
                step = definition.steps[ref]
                if Key(ref, iteration_path) in run.tasks:
                    continue
                others = [each for each in steps_skipped_together(after, step, None) if each.ref != task.key.ref]
                found |= {
                    Key(each.ref, iteration_path): None
                    for each in (step, *others)
                    if Key(each.ref, iteration_path) not in run.tasks
                }
    return list(found)


def _upgrade_problems(run: Run, definition: Definition, kept: list[Task], levels: Levels) -> Iterator[str]:
    open_tasks = [task for task in kept if task.is_open]
    for task in kept:
        step = restore_step(definition.steps[task.key.ref], task.step_state)
        if step.loops != task.step.loops:
            yield f"{task.key.ref} is in other loops in the new version."
        elif step.type != task.step.type and (task.is_open or _holds_steps(step) or _holds_steps(task.step)):
            yield f"{task.key.ref} changes its type from {task.step.type} to {step.type}."
        elif structure_of(step.type).flow is Flow.DYNAMIC_FORK and step.follower != task.step.follower:
            yield f"The join of {task.key.ref} changes from {task.step.follower} to {step.follower}."
        for ref, iteration in zip(step.loops, task.key.iteration_path, strict=False):
            if phase_of(definition.steps[ref].document, task.key.ref) not in (None, iteration):
                yield f"{task.key.ref} is in another part of {ref} in the new version."
    for task in open_tasks:
        yield from _position_problems(run, definition, task, open_tasks, levels[task.key])


def _holds_steps(step: Step) -> bool:
    return bool(step.heads) or structure_of(step.type).flow is Flow.DYNAMIC_FORK


def _position_problems(
    run: Run, definition: Definition, task: Task, open_tasks: list[Task], path: tuple[StepLevel, ...]
) -> Iterator[str]:
    for level in path[:-1]:
        enclosing = run.tasks.get(Key(level.ref, task.key.iteration_path[: len(definition.steps[level.ref].loops)]))
        if enclosing is None or enclosing.status == SKIPPED:
            yield f"{task.key.ref} is inside {level.ref} in the new version, which this run has not entered."
    for number, level in enumerate(path):
        iteration_path = task.key.iteration_path[: len(definition.steps[level.ref].loops)]
        is_own_join = number == len(path) - 1 and is_join(task.step)
        for ref in level.before[:-1] if is_own_join else level.before:
            within = {ref, *references_inside(definition.steps[ref].document)}
            if early := next(
                (
                    t
                    for t in open_tasks
                    if t.key.ref in within and t.key.iteration_path[: len(iteration_path)] == iteration_path
                ),
                None,
            ):
                yield f"{early.key.ref} and {task.key.ref} are both open, but consecutive in the new version."
        for ref in level.after:
            late = run.tasks.get(Key(ref, iteration_path))
            if late is not None and not late.is_open and (late.status != SKIPPED or late.is_control_removed):
                yield f"{ref} has ended, but comes after the open {task.key.ref} in the new version."


def _changed_input(old: dict[str, Any], given: Mapping[str, Any], run: Run, definition: Definition) -> dict[str, Any]:
    """Return the input of the run with the given values over the old ones. `***` stands for the stored masked value."""
    names = masked_names(run.definition)
    restored = restore_named(dict(given), old, names)
    others = {name: value for name, value in old.items() if name not in given}
    kept = [path_text(keys) for keys in restored_paths(dict(given), restored)]
    kept += [name for name in others if mask_encrypt({name: others[name]}, names, str) != {name: others[name]}]
    changed = {**old, **restored}
    if kept and changed != old and (ref := receiver_from_data(definition.document.get("tasks"))):
        raise Invalid(
            f"The receiver of step {ref} depends on data, so masked values are kept in an unchanged input only. "
            f"Send a value of your own for `{kept[0]}`, or leave the input as it was."
        )
    return changed


def _upgrade_effects(
    run: Run,
    ctx: DecisionContext,
    now: int,
    plan: UpgradePlan,
    outputs: Mapping[str, Any],
    input: Mapping[str, Any] | None,
) -> list[Effect]:
    reason = f"Version {plan.definition.version} has no such step."
    effects: list[Effect] = []
    for key in reversed(plan.canceled):
        effects += abandon_task(run.tasks[key], now, reason)
    facts: dict[str, Any] = {"last_retried_at": now}
    if input:
        facts["input"] = _changed_input(ctx.input(), input, run, plan.definition)
    effects += [SwitchDefinition(plan.definition, _map_steps(run, plan.definition)), UpdateRun(facts)]
    after = apply_effects(run, effects)
    skipped = [
        skipped_task(
            plan.definition.steps[key.ref],
            key,
            after,
            now,
            output=_output_for(outputs, key),
            step_state={CONTROL_REMOVED: True},
        )
        for key in plan.completed
    ]
    after = apply_effects(after, skipped)
    updates = [*_update_states(run, after), *_stop_successors(run, after, plan)]
    after = apply_effects(after, updates)
    return [*effects, *skipped, *updates, *_start_over(run, after, ctx, now)]


def _map_steps(run: Run, definition: Definition) -> dict[Key, Step]:
    """Return the step of each task in the new version; a task without one gets a step without successors."""
    found: dict[Key, Step] = {}
    for key, task in run.tasks.items():
        if not task.branch_head:
            step = definition.step(key.ref)
            removed = fast_replace(task.step, follower=None, loops=(), joined_by=(), permissive=False)
            found[key] = removed if step is None else restore_step(step, task.step_state)
    return found


def _output_for(outputs: Mapping[str, Any], key: Key) -> dict[str, Any]:
    output = outputs.get(str(key), outputs.get(key.ref))
    return output if isinstance(output, dict) else {} if output is None else {"result": output}


def _update_states(before: Run, after: Run) -> Iterator[Effect]:
    """Adapt the step state of tasks to the steps of the new version."""
    for task in after.tasks.values():
        if task.branch_head:
            continue
        state = step_type_of(task.step.type).upgraded_state(task, before.tasks.get(task.key), after)
        if state != task.step_state:
            yield UpdateTask(task.key, {"step_state": state})


def _stop_successors(before: Run, after: Run, plan: UpgradePlan) -> Iterator[Effect]:
    """Keep ended tasks from passing control again to steps that the new version adds after them."""
    freed = _freed_tasks(after, _predecessors(before, plan))
    for task in after.tasks.values():
        if task.is_open or task.status == SKIPPED or task.is_control_removed or task.branch_head or task.key in freed:
            continue
        new_keys = [key for key in step_type_of(task.step.type).successors(task) if key not in after.tasks]
        if new_keys and not _is_waited_for(before, after, task):
            yield UpdateTask(task.key, {"step_state": {**task.step_state, CONTROL_REMOVED: True}})


def _is_waited_for(before: Run, after: Run, task: Task) -> bool:
    """Return True for a fork whose join still waits, and for the end of a branch of such a fork."""
    if structure_of(task.step.type).forks:
        return _is_open(after, task.step.follower, task.key.iteration_path)
    if any(step_type_of(task.step.type).successors(before.tasks[task.key])):
        return False
    steps = after.definition.steps
    path = path_to_step(after.definition.document.get("tasks") or (), task.key.ref)
    enclosing = [steps[level.ref] for level in path[:-1] if steps[level.ref].loops == task.step.loops]
    forks = [step for step in enclosing if structure_of(step.type).flow is Flow.FORK]
    return bool(forks) and _is_open(after, forks[-1].follower, task.key.iteration_path)


def _is_open(run: Run, ref: str | None, iteration_path: tuple[int, ...]) -> bool:
    task = run.tasks.get(Key(ref or "", iteration_path))
    return task is not None and task.is_open


def _freed_tasks(run: Run, found: set[Key]) -> set[Key]:
    """Return the tasks in `found`, and the ended tasks that control passes on its way from them."""
    freed, left = set(found), set(found)
    while left:
        task = run.tasks[left.pop()]
        targets = {key for key in step_type_of(task.step.type).successors(task) if key in run.tasks} - freed
        ended = {key for key in targets if not run.tasks[key].is_open and run.tasks[key].status != SKIPPED}
        freed |= ended
        left |= ended
    return freed


def _predecessors(run: Run, plan: UpgradePlan) -> set[Key]:
    """Return the kept tasks before canceled ones. Control continues from them."""
    targets_of = {task.key: set(step_type_of(task.step.type).successors(task)) for task in run.tasks.values()}
    found, left = set(), set(plan.canceled)
    seen = set(left)
    while left:
        key = left.pop()
        for source in [each for each, targets in targets_of.items() if key in targets and each not in seen]:
            seen.add(source)
            if source in plan.kept and run.tasks[source].status != SKIPPED:
                found.add(source)
            else:
                left.add(source)
    return found


def _start_over(before: Run, after: Run, ctx: DecisionContext, now: int) -> list[Effect]:
    """Enter the first step if the new version has none of the steps that the run reached."""
    first = after.definition.first
    if not first or Key(first) in after.tasks or any(after.definition.step(key.ref) for key in before.tasks):
        return []
    return enter_step(Key(first), None, DecisionContext(after, ctx.data), now)
