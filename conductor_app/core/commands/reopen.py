"""Shared parts of the commands that open an ended run again."""

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
"""Subject of the message that resumes a child run."""
DELETED_REASON = "The task that started it was deleted."


def require_whole_run(run: Run) -> None:
    """Require the whole run, because the command reads all tasks.

    Raises:
        DataRequired: when only a part of the run is loaded.
    """
    if not run.is_whole:
        raise DataRequired({WholeRun()})


def reopened_run_facts(now: int) -> dict[str, Any]:
    """Return the fields that open a run again; its timeout starts again (execution §11 rows 31 and 32)."""
    return {
        "reason": "",
        "output": {},
        "ended_at": None,
        "failed_attempt_id": "",
        "failed_refs": (),
        "failed_names": (),
        "last_retried_at": now,
        # A run that has started does not wait for its concurrency limit again. A restart sets this itself.
        "is_held": False,
    }


def failed_tasks(run: Run) -> list[Task]:
    """Return the newest task of each reference if it failed, timed out or was canceled, in the order of creation.

    Each item of a FOR_EACH has its own newest task. A task of an earlier iteration counts as well if it is fatal: its
    child was opened again after the loop had continued.
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
    """Return the position of a task in the order of creation."""
    return task.seq


def terminate_tasks(run: Run) -> list[Task]:
    """Return the TERMINATE tasks that ended the run and would end it again at once."""
    return [task for task in run.tasks.values() if run_ending(task)]


def find_restart_point(run: Run, end: Task, spared: Key | None = None) -> Task:
    """Return the last task before a TERMINATE whose outcome came from outside; retrying it can avoid the TERMINATE.

    The search stops before tasks whose retry would delete `spared`.
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
    """Return True if the task is completed by a worker, a client or another run. A WAIT with a timer is not."""
    return step_type_of(task.step.type).is_completed_externally and task.attempt.ends_at == NEVER


def is_reopened(task: Task) -> bool:
    """Return True if the task is opened again where it stopped.

    A loop that failed before its first iteration is not.
    """
    kind = step_type_of(task.step.type)
    return kind.is_reopened and (task.iteration > 0 or not kind.counts_iterations)


def is_resumable(task: Task) -> bool:
    """Return True if the task waits for a child run that can be resumed instead of started again."""
    return bool(task.attempt.child_id) and not task.succeeded


def superseded_keys(run: Run, task: Task) -> set[Key]:
    """Return the tasks after the iteration in which a step failed. They are deleted if the step continues there."""
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
    """Open ended joins and loops again; a loop continues in the iteration given in `keys`.

    `resumes`: resume the children that the tasks wait for, except the child of `spared`, which is running already.
    """
    for task in sorted((run.tasks[key] for key in keys), key=creation_order):
        if task.is_open:
            continue
        yield from step_type_of(task.step.type).reopen(task, ctx, now, keys[task.key])
        if resumes and is_resumable(task) and task.key != spared:
            yield SendMessage(task.attempt.child_id, RESUME, {"parent": run.id, "attempt": task.attempt.id})


def delete_tasks(run: Run, keys: Iterable[Key]) -> Iterator[Effect]:
    """Delete tasks, and terminate their open child runs."""
    tasks = sorted((run.tasks[key] for key in keys), key=creation_order)
    if tasks:
        yield DeleteTasks(tuple(task.key for task in tasks))
    for task in tasks:
        if task.attempt.child_id:
            yield SendMessage(task.attempt.child_id, "terminate", {"reason": DELETED_REASON})


def notify_parent(run: Run, how: str, request: dict[str, Any] | None = None) -> Iterator[Effect]:
    """Send the parent a message that this run is open again.

    `how`: the operation. `request`: the run that the operator named, and the new facts for that run.
    """
    if run.parent_id:
        facts = {"attempt": run.parent_attempt_id, "child": run.id, "how": how}
        yield SendMessage(run.parent_id, "child_reopened", {**facts, "asked": request} if request else facts)
