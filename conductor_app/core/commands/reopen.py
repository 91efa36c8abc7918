"""Commands that open an ended run again: restart, retry, and resume after a child run (execution §7.2, §7.3, §7.6)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..data_requests import DataRequired, WholeRun
from ..decision_context import Command, DecisionContext
from ..definition import Definition, Key, Step, structure_of
from ..effects import DeleteTasks, Effect, ResolveTask, SendMessage, SetVariables, TransitionRun, UpdateRun
from ..errors import Conflict, NotAllowedInState, NotFound
from ..rules.advance import pending_entries
from ..rules.finish import is_failure_handled
from ..rules.retries_and_timeouts import next_attempt, open_attempt, reopen_attempt
from ..snapshot import NEVER, Run, Task
from ..states import CANCELED, COMPLETED, FAILED, RUN, TIMED_OUT
from ..step_types import forked_references, run_ending, step_type_of


def restart_run(definition: Definition | None = None) -> Command:
    """Return the command that deletes all tasks and starts again, with this definition if one is given.

    Raises:
        NotAllowedInState: when the command is applied and the run is open.
        NotFound: when the command is applied and the definition is not restartable.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        new_definition = definition or run.definition
        if run.is_open:
            raise NotAllowedInState(f"Workflow {run.id} is {run.status}. Only an ended workflow can be restarted.")
        RUN.after(run.status, "restart")
        if run.status == COMPLETED and run.definition.document.get("restartable") is False:
            name, version = run.definition.name, run.definition.version
            raise NotFound(
                f"Workflow {run.id} is an instance of workflow {name}, version {version}, and is non restartable."
            )
        require_whole_run(run)
        start_facts = {"created_at": now, "last_retried_at": 0, "idle_ms": 0, "next_seq": 1}
        facts = {**reopened_run_facts(run, now), **start_facts, "definition": new_definition}
        yield TransitionRun("restart", now, facts)
        # Unlike in Conductor, a restart resets the variables (§11 row 34).
        yield SetVariables(dict(new_definition.document.get("variables") or {}))
        yield from delete_tasks(run, run.tasks)
        yield from notify_parent(run, "restarted")

    return command


TasksByLoop = Mapping[Key, list[Key]]


class Downstream:
    """The tasks downstream of a task.

    `gone`: the task itself and the tasks after it. `waiting`: the joins and loops that stay and wait for any of these,
    each loop with the iteration in which it continues.
    """

    def __init__(self, run: Run, start: Key, inside: TasksByLoop | None = None) -> None:
        self.run, self.start = run, start
        self.gone: set[Key] = set()
        self.waiting: dict[Key, int | None] = {}
        self._seen: set[Key] = set()
        self._inside = _tasks_by_loop(run) if inside is None else inside
        self._follow([(start, run.tasks[start])])
        self.waiting = {key: iteration for key, iteration in self.waiting.items() if key not in self.gone}

    def _follow(self, to_follow: list[tuple[Key, Task]]) -> None:
        """Follow control. A step without a task is followed as well, because it may have been skipped."""
        while to_follow:
            key, source = to_follow.pop()
            if key in self._seen:
                continue
            self._seen.add(key)
            task = self.run.tasks.get(key)
            step = task.step if task else self.run.step(key.ref, source)
            if step is None:
                continue
            to_follow += [(after, task or source) for after in next_keys(step, key, task)]
            if task is not None:
                to_follow += [(inner, task) for inner in self._inside.get(key, ())]
                self.gone.add(key)
                to_follow += self._add_reopened(task)

    def _add_reopened(self, task: Task) -> Iterator[tuple[Key, Task]]:
        """Yield the keys after the joins and loops that waited for a task and are not open."""
        to_check = [task]
        while to_check:
            awaited = to_check.pop()
            for key in waiting_keys(awaited):
                waiter = self.run.tasks.get(key)
                if waiter is None or key in self.waiting:
                    continue
                is_loop = key == awaited.loop
                self.waiting[key] = awaited.key.iteration_path[-1] if is_loop else None
                to_check.append(waiter)
                if waiter.step.follower:
                    yield Key(waiter.step.follower, key.iteration_path), waiter
                if is_loop:
                    yield from (
                        (late, waiter)
                        for late in _tasks_after_iteration(self._inside, waiter, awaited.key.iteration_path[-1])
                    )


@dataclass(frozen=True, slots=True)
class Retry:
    """Command that retries failed and canceled tasks.

    `resumes`: tasks that wait for a child run resume it; otherwise each starts another one. `is_asked`: the parent sent
    the command and waits for this run already.
    """

    resumes: bool = False
    is_asked: bool = False

    def __call__(self, run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if run.is_open:
            raise NotAllowedInState(
                f"Workflow {run.id} is {run.status}. Only a failed, timed-out or terminated workflow can be retried."
            )
        RUN.after(run.status, "retry")
        require_whole_run(run)
        failed, ends = failed_tasks(run), terminate_tasks(run)
        is_done = all(is_failure_handled(run, task) for task in failed) and not _can_advance(run)
        if not ends and run.status != TIMED_OUT and is_done:
            raise Conflict(f"There are no retryable tasks in workflow {run.id}. Restart it, or rerun it from a task.")
        trails = [Downstream(run, _retry_origin(run, end).key) for end in ends]
        yield TransitionRun("retry", now, reopened_run_facts(run, now))
        yield from _retry_tasks(run, failed, RetryScope.of(trails), ctx, now, self.resumes)
        if not self.is_asked:
            yield from notify_parent(run, "retried")


def _can_advance(run: Run) -> bool:
    """Return True if control is at a step without a task, as after RunCannotContinue."""
    return any(key not in run.tasks for key, _source in pending_entries(run))


def _retry_origin(run: Run, end: Task) -> Task:
    """Return the task to retry so that this TERMINATE does not end the run again at once."""
    cause = find_restart_point(run, end)
    if not is_completed_externally(cause):
        raise Conflict(
            f"Workflow {run.id} would end again at once, because no task before {end.key} can be retried. "
            "Restart it, or rerun it with another input."
        )
    return cause


@dataclass(frozen=True, slots=True)
class RetryScope:
    """The tasks that are deleted (`gone`), opened again (`waiting`) and retried first (`starts`).

    `waiting` holds the iteration in which a loop continues.
    """

    gone: set[Key]
    waiting: dict[Key, int | None]
    starts: tuple[Key, ...] = ()

    @classmethod
    def of(cls, trails: Sequence[Downstream]) -> "RetryScope":
        """Return the scope of several downstream sets. Their starts stay and are retried."""
        return cls(
            {key for trail in trails for key in trail.gone if key != trail.start},
            {key: iteration for trail in trails for key, iteration in trail.waiting.items()},
            tuple(trail.start for trail in trails),
        )


def _retry_tasks(
    run: Run,
    failed: Iterable[Task],
    reach: RetryScope,
    ctx: DecisionContext,
    now: int,
    resumes: bool = False,
    child_of: Key | None = None,
) -> Iterator[Effect]:
    """Retry each failed task and each start of the scope, and delete the tasks after the starts.

    `resumes`: tasks that wait for a child run resume it instead of starting another. `child_of`: the task whose child
    was opened again and caused this; the canceled tasks beside it are reopened under their ids.
    """
    gone, waiting = set(reach.gone), dict(reach.waiting)
    left: dict[Key, Task] = {}
    for task in (*failed, *(run.tasks[start] for start in reach.starts)):
        if task.key in gone or (task.key != child_of and is_failure_handled(run, task, waiting)):
            continue
        left[task.key] = task
        is_resumed = task.key == child_of or (resumes and is_resumable(task))
        if task.key not in waiting and (is_resumed or is_reopened(task)):
            waiting[task.key] = step_type_of(task.step.type).failed_iteration(task)
            gone |= superseded_keys(run, task)
    waiting = {key: iteration for key, iteration in waiting.items() if key not in gone}
    yield from delete_tasks(run, gone)
    yield from reopen_tasks(run, waiting, ctx, now, resumes, child_of)
    for task in sorted(
        (task for key, task in left.items() if key not in waiting and key not in gone), key=creation_order
    ):
        yield ResolveTask(task.key, "reopen")
        if child_of is not None and task.attempt.status == CANCELED:
            yield from reopen_attempt(task, ctx, now)
        else:
            yield open_attempt(task, next_attempt(task, ctx, now, delay=0, first_at=now), ctx)


@dataclass(frozen=True, slots=True)
class ResumeParent:
    """Command for the message that a child run was opened again. `attempt`: the one that waited for the child.

    `asked`: if an operator named a run above the child, that run (`run`) and its new facts (`input`, `correlation_id`).
    All runs up to it are opened again, whether the tasks are optional or not.
    """

    attempt: str
    child: str
    how: str
    asked: dict[str, Any] = field(default_factory=dict)

    def __call__(self, run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        require_whole_run(run)
        task = run.task_of_attempt(self.attempt)
        if task is None or task.attempt.child_id != self.child:
            return
        if not self.asked and (task.step.optional or _failure_is_handled(run, task)):
            return
        repaired = self._resume_in_open_run if run.is_open else self._resume_in_ended_run
        if effects := list(repaired(run, task, ctx, now)):
            yield from effects
            # The child may have ended again before this message was processed. The handler of `child_ended` checks.
            yield SendMessage(run.id, "child_ended", {"attempt": self.attempt, "child": self.child})

    def _resume_in_open_run(self, run: Run, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """Let an unsuccessful task of an open run wait again; nothing else in the run changes."""
        if task.succeeded or task.attempt.is_open:
            return
        if not task.is_open:
            # The tasks after a permissive failure exist already. From now on the advance rule must check for them.
            yield UpdateRun({"last_retried_at": now})
        yield from step_type_of(task.step.type).reopen(task, ctx, now)

    def _resume_in_ended_run(self, run: Run, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        yield TransitionRun("reopen", now, {**reopened_run_facts(run, now), **self._new_facts(run)})
        yield from _await_child_again(run, task, ctx, now)
        yield from notify_parent(run, self.how, self.asked if self.asked.get("run") != run.id else None)

    def _new_facts(self, run: Run) -> dict[str, Any]:
        if self.asked.get("run") != run.id:
            return {}
        return {name: self.asked[name] for name in ("input", "correlation_id") if self.asked.get(name) is not None}


def _await_child_again(run: Run, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Let the task wait for its child again, and retry the tasks that failed.

    Completed work stays, even after the success of the child. Only the tasks that handled the child's failure, or led
    to a TERMINATE that would end the run again at once, are deleted.
    """
    trail, ends = Downstream(run, task.key), terminate_tasks(run)
    is_undone = _failure_is_handled(run, task) or any(end.key in trail.gone for end in ends)
    trails = [trail] if is_undone else []
    covered = {key for trail in trails for key in trail.gone}
    causes = [find_restart_point(run, end, spared=task.key) for end in ends if end.key not in covered]
    reach = RetryScope.of([*trails, *(Downstream(run, cause.key) for cause in causes)])
    if task.succeeded and not is_undone:
        _reopen_joins(run, trail, reach)
    yield from _retry_tasks(run, [task, *failed_tasks(run)], reach, ctx, now, resumes=True, child_of=task.key)


def _failure_is_handled(run: Run, task: Task) -> bool:
    return not task.succeeded and is_failure_handled(run, task)


def _reopen_joins(run: Run, trail: Downstream, reach: RetryScope) -> None:
    """Open the joins of the task's result again, and delete the tasks that failed right after it.

    A loop that continued to later iterations stays as it is.
    """
    inside = _tasks_by_loop(run)
    for key, iteration in trail.waiting.items():
        if iteration is None or not _tasks_after_iteration(inside, run.tasks[key], iteration):
            reach.waiting.setdefault(key, iteration)
    open_again = {trail.start, *reach.waiting}
    led_by_others = {
        key
        for task in run.tasks.values()
        if task.key not in open_again
        for key in step_type_of(task.step.type).successors(task)
    }
    for task in failed_tasks(run):
        is_plain = not (is_reopened(task) or is_resumable(task))
        if task.key in trail.gone and is_plain and task.key not in led_by_others:
            reach.gone.add(task.key)


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


def reopened_run_facts(run: Run, now: int) -> dict[str, Any]:
    """Return the fields that open a run again; its timeout starts again (execution §11 rows 31 and 32)."""
    return {
        "reason": "",
        "output": {},
        "ended_at": None,
        "failed_attempt_id": "",
        "failed_refs": (),
        "failed_names": (),
        "last_retried_at": now,
        "failed_before_at": run.ended_at if run.status in (FAILED, TIMED_OUT) else run.failed_before_at,
        "idle_ms": run.idle_ms + max(now - (now if run.ended_at is None else run.ended_at), 0),
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
    return task.seq


def terminate_tasks(run: Run) -> list[Task]:
    """Return the TERMINATE tasks that ended the run and would end it again at once."""
    return [task for task in run.tasks.values() if run_ending(task)]


def find_restart_point(run: Run, end: Task, spared: Key | None = None) -> Task:
    """Return the last task before a TERMINATE whose outcome came from outside; retrying it can avoid the TERMINATE.

    The search stops before tasks whose retry would delete `spared`.
    """
    inside, found = _tasks_by_loop(run), end
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
    return set() if iteration is None else set(_tasks_after_iteration(_tasks_by_loop(run), task, iteration))


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


def waiting_keys(task: Task) -> Iterator[Key]:
    """Yield the keys of the joins and the loop that wait for a task."""
    for ref in {task.joined_by, *task.step.joined_by} - {""}:
        yield Key(ref, task.key.iteration_path)
    if task.loop:
        yield task.loop


def _tasks_by_loop(run: Run) -> TasksByLoop:
    """Return the tasks in each loop, in any iteration and at any depth."""
    inside: dict[Key, list[Key]] = {}
    for key, task in run.tasks.items():
        for depth, ref in enumerate(task.step.loops):
            inside.setdefault(Key(ref, key.iteration_path[:depth]), []).append(key)
    return inside


def _tasks_after_iteration(inside: TasksByLoop, loop: Task, iteration: int) -> list[Key]:
    if not step_type_of(loop.step.type).iterations_are_sequential(loop):
        return []
    depth = len(loop.key.iteration_path)
    return [key for key in inside.get(loop.key, ()) if key.iteration_path[depth] > iteration]


def next_keys(step: Step, key: Key, task: Task | None) -> Iterator[Key]:
    """Yield the keys that control may reach from a step without entering or leaving an iteration."""
    heads = () if step.inside else step.heads
    forked = forked_references(task) if task else ()
    for ref in (*heads, *forked, step.follower):
        if ref:
            yield Key(ref, key.iteration_path)
