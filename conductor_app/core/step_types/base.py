"""The shape of a step type: how control enters it, when it is finished, and where control goes from it."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..document.inline_definitions import Path, extract_definitions, restore_definitions
from ..effects import CreateTask, Effect, ResolveTask, TransitionAttempt
from ..frozen import fast_replace
from ..ids import derived_id
from ..snapshot import FIRST_NUMBER, FORMER_WORKERS, NEVER, Attempt, Run, Task
from ..states import ACTIVE, ATTEMPT, COMPLETED, FAILED, FAILED_FOR_GOOD, LEASED
from ..step_state import StepState, TaskState
from ..step_structure import StepStructure
from ..timers import next_timer, set_due_at

TASK_END = {COMPLETED: COMPLETED, FAILED: ACTIVE, FAILED_FOR_GOOD: ACTIVE}
"""The status of a task whose attempt is created with this status: a failed one is left to the retry rule."""


class RunEnding(NamedTuple):
    """How a step ends its run: an event of the run's state machine, and a reason, which may be empty."""

    event: str
    reason: str


class StepType(StepStructure):
    """How one type of step behaves. A type knows no other type."""

    is_queued = False  # its attempts wait in a queue for a worker
    waits_for_tasks = False  # it is open until other tasks of the run have ended
    is_retried = True  # a failed attempt may be tried again (execution §3)
    counts_iterations = False  # its `iteration` is the present turn: 0 as long as it has not begun
    handles_failures = False  # a failure inside it does not end the run
    stops_all_iterations = False  # a failure in one of its turns ends what goes on in the others
    has_phases = False  # its turns are different parts: what failed in one is nothing to it in another
    is_reopened = False  # an operator's retry opens the same attempt again instead of a new one (execution §7.3)
    is_completed_externally = False  # what it comes to is said by a worker, a person, a client or another run

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """Control has come: the effects that create the task."""
        raise NotImplementedError

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """The task is active: the effects that finish it, if it can be finished by what is known."""
        return iter(())

    def on_deadlock(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """Nothing that is open leads to what the task waits for: the effects by which it goes on all the same."""
        return iter(())

    def successors(self, task: Task) -> Iterator[Key]:
        """The keys that have control because of this task."""
        if task.lets_control_pass and task.step.follower:
            yield Key(task.step.follower, task.key.iteration_path)

    def on_child_failure(self, task: Task, failed: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """A task inside has failed: where the step goes from here, if it takes failures."""
        raise NotImplementedError

    def run_ending(self, task: Task) -> RunEnding | None:
        """Return how the task ends its run, if it does."""
        return None

    def forked_references(self, task: Task) -> tuple[str, ...]:
        """Return the references of the branches that the task has made."""
        return ()

    def enter_case(self, task: Task, head: str) -> StepState:
        """Return the state in which the task leads to the body with this head. Raises TypeError without choice."""
        raise TypeError(f"{self.type} does not choose between bodies.")

    def iterations_are_sequential(self, task: Task) -> bool:
        """Whether each turn comes after the one before; else they go on side by side."""
        return True

    def failed_iteration(self, task: Task) -> int | None:
        """The turn with which it failed, where it went on to others before its end; a further try begins there."""
        return None

    def upgraded_state(self, task: Task, old: Task | None, run: Run) -> StepState:
        """Return the state of a task whose run has moved to another version of its definition.

        `task`: with its step in the other version. `old`: the task before the move. `run`: after the move.
        """
        return task.step_state

    def reopen(self, task: Task, ctx: DecisionContext, now: int, iteration: int | None = None) -> Iterator[Effect]:
        """The effects that open the same attempt again, its clocks anew; a step with turns goes on in this one."""
        policy = task.step.policy
        total_ends_at = now + policy.total_seconds * 1000 if policy.total_seconds else NEVER
        facts: dict[str, Any] = {"reason": "", "started_at": now, "lease_ends_at": None, "total_ends_at": total_ends_at}
        attempt = fast_replace(task.attempt, status=LEASED, **facts)
        if not task.is_open:
            yield ResolveTask(task.key, "reopen")
        yield TransitionAttempt(task.key, "reopen", now, {**facts, "due_at": next_timer(policy, attempt, now)})


def engine_held_task(step: Step, key: Key, run: Run, now: int, **facts: Any) -> CreateTask:
    """The task of a step that waits for something the engine sees: its attempt is leased by the engine, without end."""
    return CreateTask(new_task(step, key, run, now, status=LEASED, started_at=now, **facts))


def completed_task(step: Step, key: Key, run: Run, now: int, status: str = COMPLETED, **facts: Any) -> CreateTask:
    """The task of a step that is over as soon as control has come."""
    return CreateTask(new_task(step, key, run, now, status=status, started_at=now, ended_at=now, **facts))


def new_task(
    step: Step,
    key: Key,
    run: Run,
    now: int,
    *,
    status: str,
    step_state: TaskState | None = None,
    iteration: int = 0,
    branch_steps: Mapping[str, Step] | None = None,
    **facts: Any,
) -> Task:
    """A task with its first attempt, or under the identity that it keeps; `facts` are fields of the attempt."""
    attempt = new_attempt(step, key, run, now, number=0, status=status, **facts)
    kept = run.identities.get(key)
    if kept is not None:
        attempt = fast_replace(attempt, number=kept.number, seq=kept.attempt_seq, previous_id=kept.previous_id)
    return Task(
        id=kept.task_id if kept else attempt.id,
        key=key,
        step=step,
        status=TASK_END.get(status, ACTIVE),
        seq=kept.task_seq if kept else 0,
        created_at=now,
        attempt=attempt,
        iteration=iteration,
        step_state={
            **(step_state or {}),
            **({"secrets": sorted(step.secrets)} if step.secrets else {}),
            **({FIRST_NUMBER: kept.number} if kept and kept.number else {}),
            **({FORMER_WORKERS: {attempt.id: list(kept.workers)}} if kept and kept.workers else {}),
        },
        branch_steps=branch_steps or {},
        joined_by=step.joined_by[0] if step.joined_by else "",
    )


def new_attempt(
    step: Step,
    key: Key,
    run: Run,
    now: int,
    *,
    number: int,
    status: str,
    first_at: int | None = None,
    delay_seconds: int = 0,
    jitter_ms: int = 0,
    **facts: Any,
) -> Attempt:
    """An attempt with its clocks set by the step's policy. `first_at`: when the first attempt was scheduled."""
    policy, delay_ms = step.policy, delay_seconds * 1000
    attempt = Attempt(
        id=attempt_id(run, key, number, now, run.next_seq),
        number=number,
        seq=0,
        status=status,
        scheduled_at=now,
        pending_since=now,
        visible_at=now + delay_ms + jitter_ms,
        delay_ms=delay_ms,
        callback_ms=delay_ms,
        lease_ms=policy.lease_seconds * 1000,
        timeout_ms=policy.timeout_seconds * 1000,
        total_ends_at=(now if first_at is None else first_at) + policy.total_seconds * 1000
        if policy.total_seconds
        else NEVER,
        priority=run.priority,
    )
    attempt = fast_replace(attempt, **facts)
    return attempt if attempt.status in ATTEMPT.final else set_due_at(policy, attempt)


def attempt_id(run: Run, key: Key, number: int, now: int, place: int) -> str:
    """The id of an attempt. Those of one moment are handed out in the order of their ids, which is that of places."""
    if (kept := run.identities.get(key)) is not None:
        return kept.attempt_id
    return derived_id(now, run.id, run.revision, run.next_seq, key, number, place=place)


def complete_task(task: Task, now: int, output: dict[str, Any]) -> Iterator[Effect]:
    """The task's attempt is completed with this output."""
    yield TransitionAttempt(task.key, "complete", now, {"output": output})


def fail_task(
    task: Task, now: int, reason: str, output: dict[str, Any] | None = None, event: str = "fail"
) -> Iterator[Effect]:
    """The task's attempt fails for this reason."""
    yield TransitionAttempt(task.key, event, now, {"reason": reason, "output": output or {}})


def resolve_inputs(
    step: Step, ctx: DecisionContext, key: Key, run: Run, now: int, *, holds_steps: bool = False
) -> dict[str, Any]:
    """Return the step's inputs over the policy's template, resolved (execution §9.4); or those that a rerun gave.

    `holds_steps`: the inputs hold documents of steps, so definitions given in place in them are left as they are.
    """
    if (given := ctx.input_override(key)) is not None:
        return dict(given)
    template = dict(step.policy.input_template)
    own = {"CPEWF_TASK_ID": attempt_id(run, key, 0, now, run.next_seq)}
    written = {**template, **step.inputs}
    definitions: dict[Path, dict[str, Any]] = {}
    if holds_steps:
        written, definitions = extract_definitions(written)
    resolved = restore_definitions(ctx.resolve(written, own), definitions)
    for name, fallback in template.items():
        if resolved.get(name) is None:
            resolved[name] = fallback
    return resolved
