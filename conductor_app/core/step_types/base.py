"""Base class of step types: how control enters a step, when it is finished, and where control goes next."""

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
"""Status of a task by the status that its first attempt is created with. The retry rule handles a failed one."""


class RunEnding(NamedTuple):
    """How a step ends its run: an event of the run's state table, and a reason, which may be empty."""

    event: str
    reason: str


class StepType(StepStructure):
    """Behavior of one type of step. A step type does not depend on other types."""

    is_queued = False  # its attempts wait in a queue for a worker
    waits_for_tasks = False  # it stays open until other tasks of the run have ended
    is_retried = True  # a failed attempt may be tried again (execution §3)
    counts_iterations = False  # its `iteration` is the current one, or 0 before the first
    handles_failures = False  # a failure inside it does not end the run
    stops_all_iterations = False  # a failure in one of its iterations cancels the others
    has_phases = False  # its iterations are different phases; a failure in one does not concern another
    is_reopened = False  # an operator's retry opens the same attempt again instead of a new one (execution §7.3)
    is_completed_externally = False  # a worker, a client, a person or another run sets its outcome
    extended_input = ""  # the input that `extend_inputs` adds to

    def as_executed(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Step:
        """Return the step that control enters: this one, or one of another type that an input names.

        Raises:
            StepRefused: when the input names no task.
        """
        return step

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """Return the effects that create the task when control enters the step.

        Raises:
            NotImplementedError: in this base class.
        """
        raise NotImplementedError

    def extend_inputs(self, step: Step, key: Key, inputs: dict[str, Any], ctx: DecisionContext) -> dict[str, Any]:
        """Return the resolved inputs with what the type adds to them from other tasks of the run."""
        return inputs

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """Return the effects that finish the active task, if the data loaded allows it."""
        return iter(())

    def on_deadlock(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """Return the effects by which the task continues although no open task leads to the tasks that it joins."""
        return iter(())

    def successors(self, task: Task) -> Iterator[Key]:
        """Yield the keys that receive control from this task."""
        if task.lets_control_pass and task.step.follower:
            yield Key(task.step.follower, task.key.iteration_path)

    def on_child_failure(self, task: Task, failed: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """Return the effects by which a step that handles failures continues after a failure inside it.

        Raises:
            NotImplementedError: in this base class.
        """
        raise NotImplementedError

    def run_ending(self, task: Task) -> RunEnding | None:
        """Return how the task ends its run, or None."""
        return None

    def forked_references(self, task: Task) -> tuple[str, ...]:
        """Return the references of the branches that the task created."""
        return ()

    def enter_case(self, task: Task, head: str) -> StepState:
        """Return the state in which the task leads to the body with this head.

        Raises:
            TypeError: when the type has no cases.
        """
        raise TypeError(f"{self.type} does not choose between bodies.")

    def iterations_are_sequential(self, task: Task) -> bool:
        """Return True if each iteration comes after the one before, and False if they run in parallel."""
        return True

    def failed_iteration(self, task: Task) -> int | None:
        """Return the iteration in which it failed, if it continued to others afterwards; a retry starts there."""
        return None

    def upgraded_state(self, task: Task, old: Task | None, run: Run) -> StepState:
        """Return the state of a task after the upgrade of its run.

        `task`: with its step in the new version. `old`: the task before the upgrade. `run`: after the upgrade.
        """
        return task.step_state

    def reopen(self, task: Task, ctx: DecisionContext, now: int, iteration: int | None = None) -> Iterator[Effect]:
        """Open the same attempt again with new timers. A loop continues in `iteration`."""
        policy = task.step.policy
        total_ends_at = now + policy.total_seconds * 1000 if policy.total_seconds else NEVER
        facts: dict[str, Any] = {"reason": "", "started_at": now, "lease_ends_at": None, "total_ends_at": total_ends_at}
        attempt = fast_replace(task.attempt, status=LEASED, **facts)
        if not task.is_open:
            yield ResolveTask(task.key, "reopen")
        yield TransitionAttempt(task.key, "reopen", now, {**facts, "due_at": next_timer(policy, attempt, now)})


def engine_held_task(step: Step, key: Key, run: Run, now: int, **facts: Any) -> CreateTask:
    """Return the effect that creates a task which the engine completes. Its attempt has a lease without end."""
    return CreateTask(new_task(step, key, run, now, status=LEASED, started_at=now, **facts))


def completed_task(step: Step, key: Key, run: Run, now: int, status: str = COMPLETED, **facts: Any) -> CreateTask:
    """Return the effect that creates a task which has ended as soon as control enters its step."""
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
    """Return a task with its first attempt, or with the identity that it keeps. `facts`: fields of the attempt."""
    attempt = new_attempt(step, key, run, now, number=0, status=status, **facts)
    identity = run.identities.get(key)
    if identity is not None:
        attempt = fast_replace(
            attempt, number=identity.number, seq=identity.attempt_seq, previous_id=identity.previous_id
        )
    return Task(
        id=identity.task_id if identity else attempt.id,
        key=key,
        step=step,
        status=TASK_END.get(status, ACTIVE),
        seq=identity.task_seq if identity else 0,
        created_at=now,
        attempt=attempt,
        iteration=iteration,
        step_state={
            **(step_state or {}),
            **({"name": step.name} if step.is_named_by_input else {}),
            **({"secrets": sorted(step.secrets)} if step.secrets else {}),
            **({FIRST_NUMBER: identity.number} if identity and identity.number else {}),
            **({FORMER_WORKERS: {attempt.id: list(identity.workers)}} if identity and identity.workers else {}),
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
    """Return an attempt with its timers set by the step's policy. `first_at`: when the first attempt was scheduled."""
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
    """Return the id of an attempt. Attempts of the same time are dispatched in the order of `place`."""
    if (identity := run.identities.get(key)) is not None:
        return identity.attempt_id
    return derived_id(now, run.id, run.revision, run.next_seq, key, number, place=place)


def complete_task(task: Task, now: int, output: dict[str, Any]) -> Iterator[Effect]:
    """Yield the effect that completes the task's attempt with this output."""
    yield TransitionAttempt(task.key, "complete", now, {"output": output})


def fail_task(
    task: Task, now: int, reason: str, output: dict[str, Any] | None = None, event: str = "fail"
) -> Iterator[Effect]:
    """The task's attempt fails for this reason."""
    yield TransitionAttempt(task.key, event, now, {"reason": reason, "output": output or {}})


def resolve_inputs(
    step: Step, ctx: DecisionContext, key: Key, run: Run, now: int, *, holds_steps: bool = False
) -> dict[str, Any]:
    """Return the resolved inputs of a step, with the policy's template under them (execution §9.4).

    Inputs that an operator set for a rerun replace them. `holds_steps`: the inputs contain documents of steps, whose
    inline definitions are not resolved.
    """
    if (override := ctx.input_override(key)) is not None:
        return dict(override)
    template = dict(step.policy.input_template)
    own = {"CPEWF_TASK_ID": attempt_id(run, key, 0, now, run.next_seq)}
    written = {**template, **step.inputs}
    definitions: dict[Path, dict[str, Any]] = {}
    if holds_steps:
        written, definitions = extract_definitions(written)
    seen = ctx if step.is_authored else ctx.from_data()
    what = f"The input of task {key}"
    resolved = restore_definitions(seen.resolve(written, own, what), definitions)
    if missing := {name: fallback for name, fallback in template.items() if resolved.get(name) is None}:
        resolved |= seen.resolve(missing, own, what)
    return resolved
