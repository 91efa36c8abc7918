"""What all commands share that open an ended run again."""

from collections.abc import Iterable, Iterator
from typing import Any

from ..data_requests import DataRequired, WholeRun
from ..decision_context import DecisionContext
from ..definition import Key
from ..effects import DeleteTasks, Effect, SendMessage
from ..snapshot import NEVER, Run, Task
from ..states import CANCELED, FAILED, TIMED_OUT
from ..step_structure import structure_of
from ..step_types import run_ending, step_type_of
from .downstream import Downstream, tasks_after_iteration, tasks_by_loop

RESUME = "resume_child"
"""The subject of the message by which a run asks a child to go on where it stopped."""
DELETED_REASON = "The task that it was started for was taken back."


def require_whole_run(run: Run) -> None:
    """These commands look at all tasks."""
    if not run.is_whole:
        raise DataRequired({WholeRun()})


def reopened_run_facts(now: int) -> dict[str, Any]:
    """What a run forgets of its end; its own time starts anew (execution §11 rows 31 and 32)."""
    return {
        "reason": "",
        "output": {},
        "ended_at": None,
        "failed_attempt_id": "",
        "failed_refs": (),
        "failed_names": (),
        "last_retried_at": now,
        # It has begun long ago, and goes on without waiting for its limit; a restart is held by whoever asks for it.
        "is_held": False,
    }


def failed_tasks(run: Run) -> list[Task]:
    """The tasks that failed, timed out or were canceled, in their order: the newest of each reference.

    What goes on side by side, as the items of a FOR_EACH do, has a newest one for each. A task of an earlier iteration
    counts too if control cannot pass it: its child was opened again after the loop had gone on.
    """
    newest: dict[tuple[str, tuple[int, ...]], Task] = {}
    for task in sorted(run.tasks.values(), key=creation_order):
        newest[task.key.ref, _enclosing_items(run, task)] = task
    found = [task for task in newest.values() if task.status in (FAILED, TIMED_OUT, CANCELED)]
    known = {task.key for task in found}
    stuck = [task for task in run.tasks.values() if task.failed_fatally and task.key not in known]
    return sorted([*found, *stuck], key=creation_order)


def _enclosing_items(run: Run, task: Task) -> tuple[int, ...]:
    loops = zip(task.step.loops, task.key.iteration_path, strict=True)
    return tuple(
        iteration for ref, iteration in loops if (step := run.step(ref, task)) and structure_of(step.type).item_type
    )


def creation_order(task: Task) -> int:
    """The place of a task in the order of creation."""
    return task.seq


def terminate_tasks(run: Run) -> list[Task]:
    """The TERMINATE tasks by which the run has ended: as long as they stand it would end again at once."""
    return [task for task in run.tasks.values() if run_ending(task)]


def find_restart_point(run: Run, end: Task, spared: Key | None = None) -> Task:
    """Where to begin again if a TERMINATE is not to end the run again: the last task before it whose outcome came
    from outside. What followed from that was only thought. Not so far back that `spared` would be taken back too.
    """
    inside, found = tasks_by_loop(run), end
    for task in sorted((task for task in run.tasks.values() if task.seq < end.seq), key=creation_order, reverse=True):
        gone = Downstream(run, task.key, inside).gone
        if end.key not in gone:
            continue
        if spared in gone:
            break
        found = task
        if is_completed_externally(task):
            break
    return found


def is_completed_externally(task: Task) -> bool:
    """Whether somebody else says what the task comes to; a WAIT that ends by itself only lets time pass."""
    return step_type_of(task.step.type).is_completed_externally and task.attempt.ends_at == NEVER


def is_reopened(task: Task) -> bool:
    """Whether it goes on where it stood; what failed before it had begun is begun anew."""
    kind = step_type_of(task.step.type)
    return kind.is_reopened and (task.iteration > 0 or not kind.counts_iterations)


def is_resumable(task: Task) -> bool:
    """Whether the task waits for a run below it, which can go on where it stopped instead of being started anew."""
    return bool(task.attempt.child_id) and not task.succeeded


def superseded_keys(run: Run, task: Task) -> set[Key]:
    """What a step did after the turn in which it failed: if it goes on there, that has never been."""
    iteration = step_type_of(task.step.type).failed_iteration(task)
    return set() if iteration is None else set(tasks_after_iteration(tasks_by_loop(run), task, iteration))


def reopen_tasks(
    run: Run,
    keys: dict[Key, int | None],
    ctx: DecisionContext,
    now: int,
    resumes: bool = False,
    spared: Key | None = None,
) -> Iterator[Effect]:
    """Open the joins and loops again that are over; a step with turns goes on in the one that is given.

    `resumes`: the children that tasks wait for again are resumed, except that of `spared`, which goes on already.
    """
    for task in sorted((run.tasks[key] for key in keys), key=creation_order):
        if task.is_open:
            continue
        yield from step_type_of(task.step.type).reopen(task, ctx, now, keys[task.key])
        if resumes and is_resumable(task) and task.key != spared:
            yield SendMessage(task.attempt.child_id, RESUME, {"parent": run.id, "attempt": task.attempt.id})


def delete_tasks(run: Run, keys: Iterable[Key]) -> Iterator[Effect]:
    """Take tasks back; the children that they have started are stopped if they are open."""
    tasks = sorted((run.tasks[key] for key in keys), key=creation_order)
    if tasks:
        yield DeleteTasks(tuple(task.key for task in tasks))
    for task in tasks:
        if task.attempt.child_id:
            yield SendMessage(task.attempt.child_id, "terminate", {"reason": DELETED_REASON})


def notify_parent(run: Run, how: str, asked: dict[str, Any] | None = None) -> Iterator[Effect]:
    """Who waited for this run hears that it goes on. `asked`: the run above to which the operator has said it."""
    if run.parent_id:
        facts = {"attempt": run.parent_attempt_id, "child": run.id, "how": how}
        yield SendMessage(run.parent_id, "child_reopened", {**facts, "asked": asked} if asked else facts)
