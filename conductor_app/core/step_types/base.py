"""Base classes of step types: how control enters a step, when it is finished, and where control goes next.

For the editor, a step type declares `label`, `summary`, `sample` (a new step is a copy of it) and `members`, the fields
of its form. Texts are marked for translation; a page translates them when it shows them, because the core imports no
Django.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar, NamedTuple

from ..data_requests import (
    DataRequest,
    DataRequired,
    IdempotencyKeyHolder,
    IdempotencyLookup,
    ScriptResult,
    TaskOutcome,
)
from ..decision_context import DecisionContext, conductor_task_type
from ..definition import DEFAULT_TYPE, STEP_STRUCTURES, Definition, Key, Step, StepStructure, is_reserved_name
from ..document.reading import Path, extract_definitions, restore_definitions
from ..effects import CreateTask, Effect, ResolveTask, TransitionAttempt
from ..errors import StepRefused
from ..expressions import ScriptLanguage, evaluator, field_text, quote_value
from ..fairness import given_share
from ..primitives import JsonValue, derived_id, fast_replace
from ..schemas import CHOICE, TEXT
from ..snapshot import FIRST_NUMBER, FORMER_WORKERS, NEVER, RUNTIME_METADATA, Attempt, Run, StepState, Task, TaskState
from ..states import ACTIVE, ATTEMPT, COMPLETED, FAILED, FAILED_FOR_GOOD, LEASED, PENDING, RUN
from ..timers import next_timer


def gettext_noop(text: str) -> str:
    """Mark a text for translation: `makemessages` finds the calls of a function with this name."""
    return text


TYPED, LONG_TYPED, NAMES, ROWS = "typed", "long typed", "names", "rows"
"""Kinds of members: any JSON value as text, on one line or several, a list of names, and an object in rows."""
REFERENCES, TASKS, WORKFLOWS, STEPS = "references", "tasks", "workflows", "steps"
"""Lists of suggestions that depend on the definition and on the server."""
SCRIPT_LABELS = {
    "value-param": gettext_noop("Value of an input"),
    "javascript": "JavaScript",
    "graaljs": "JavaScript (graaljs)",
    "python": "Python",
}
SCRIPT_LANGUAGES = tuple(SCRIPT_LABELS)
STATUS_LABELS = {
    "COMPLETED": gettext_noop("Completed"),
    "FAILED": gettext_noop("Failed"),
    "FAILED_WITH_TERMINAL_ERROR": gettext_noop("Failed, without another attempt"),
    "TERMINATED": gettext_noop("Terminated"),
}
TASK_STATUSES = ("COMPLETED", "FAILED", "FAILED_WITH_TERMINAL_ERROR")
RUN_STATUSES = ("COMPLETED", "FAILED", "TERMINATED")
ITEM_FAILURE_LABELS = {
    "FAIL": gettext_noop("The step fails, and the other items are canceled"),
    "CONTINUE": gettext_noop("The other items continue"),
}
STATIC_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "methods": ("GET", "POST", "PUT", "PATCH", "DELETE"),
}
"""The other lists of suggestions."""
DEFAULT_ITERATIONS = 3
SCRIPT_HELP = gettext_noop("The name of an input, or a script that reads the inputs from $.")


@dataclass(frozen=True, slots=True)
class StepMember:
    """A member of a step that the form edits. `place`: its keys, joined by dots. `options`: a list of suggestions."""

    place: str
    label: str
    kind: str = TEXT
    help: str = ""
    choices: tuple[str, ...] = ()
    options: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.place.split("."))


def input_member(name: str, label: str, kind: str = TYPED, options: str = REFERENCES, help: str = "") -> StepMember:
    return StepMember(f"inputParameters.{name}", label, kind, help, options=options)


def choice_member(name: str, label: str, choices: Iterable[str]) -> StepMember:
    return StepMember(f"inputParameters.{name}", label, CHOICE, choices=tuple(choices))


def step_of(type: str, ref: str, **fields: Any) -> dict[str, Any]:
    return {"name": ref, "taskReferenceName": ref, "type": type, **fields}


def loop_condition(ref: str, times: int) -> str:
    """Return the condition of a loop that ends after a number of iterations."""
    return f"if ($.{ref}['iteration'] < {times}) {{ true; }} else {{ false; }}"


TASK_END = {COMPLETED: COMPLETED, FAILED: ACTIVE, FAILED_FOR_GOOD: ACTIVE}
"""Status of a task by the status that its first attempt is created with. The retry rule handles a failed one."""


class RunEnding(NamedTuple):
    """How a step ends its run: an event of the run's state table, and a reason, which may be empty."""

    event: str
    reason: str


class StepType(StepStructure):
    """Behavior of one type of step, and what the editor shows of it."""

    summary: ClassVar[str] = ""  # what it does; the editor offers the types that have one
    search_words: ClassVar[str] = ""  # other words that find it in the editor
    sample: ClassVar[Sequence[Mapping[str, Any]]] = ()  # the steps that the editor adds
    members: ClassVar[Sequence[StepMember]] = ()  # the fields of its form in the editor

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
        """Return the effects that create the task when control enters the step."""
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
        """Return the effects by which a step that handles failures continues after a failure inside it."""
        raise NotImplementedError

    def run_ending(self, task: Task) -> RunEnding | None:
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
            **({RUNTIME_METADATA: list(step.runtime_metadata)} if step.runtime_metadata else {}),
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
    return attempt if attempt.status in ATTEMPT.final else fast_replace(attempt, due_at=next_timer(policy, attempt))


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
    what = f"The input of task {key}"
    resolved = restore_definitions(ctx.resolve(written, own, what), definitions)
    if missing := {name: fallback for name, fallback in template.items() if resolved.get(name) is None}:
        resolved |= ctx.resolve(missing, own, what)
    return resolved


def is_expression(value: object) -> bool:
    """Return True if only a run knows the value."""
    return isinstance(value, str) and "${" in value


def is_whole_number(value: object, least: int) -> bool:
    """Return True if the value is a whole number of at least `least`, is missing, or is an expression."""
    if value in (None, "") or is_expression(value):
        return True
    text = str(value)
    return not isinstance(value, bool) and text.isascii() and text.isdigit() and int(text[:18]) >= least


def whole_number(value: Any) -> int | None:
    """Return the value as a whole number, without its fraction; None if it is not a number. A Boolean is none."""
    try:
        return None if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def unknown_word_message(given: str, known: Iterable[str]) -> str:
    """Return the message for an unknown word, with a similar known one."""
    similar = get_close_matches(given, sorted(known), 1)
    hint = f"Did you mean {similar[0]}?" if similar else f"Use one of {', '.join(sorted(known)[:20])}."
    return f"{given[:100]!r} is not known. {hint}"


QUEUE_SUFFIX = re.compile(r"[@-].*", re.DOTALL)
"""The name space and the isolation group in the name of a queue."""


def require_named_objects(step: Step, task_type: str, inputs: Mapping[str, Any], ctx: DecisionContext) -> None:
    """Check that the run may use what the resolved inputs of a queued task name.

    `task_type`: decides which worker claims the task, whatever the type of its step is.

    Raises:
        StepRefused: when it may not use an object, or a secret stands for its name.
    """
    structure = _structure_of_queue(task_type)
    if structure is None:
        return
    for name in structure.naming_inputs:
        if step.secrets and _has_secret(inputs.get(name)):
            raise StepRefused(f"The input {name} must be a name; the value of a secret cannot be one.")
    is_written = step.is_authored and not step.is_named_by_input and step.type == structure.type
    written = set(structure.named_objects(step.inputs)) if is_written else set()
    for use in structure.named_objects(inputs):
        ctx.require_use(use.target_type, use.name, is_authored=use in written)


def _structure_of_queue(task_type: str) -> StepStructure | None:
    """Return the type whose built-in worker claims the tasks of a queue, or None."""
    found = STEP_STRUCTURES.get(QUEUE_SUFFIX.sub("", task_type))
    return found if found and found.is_built_in else None


def _has_secret(value: JsonValue) -> bool:
    return isinstance(value, str) and "${" in value and "secrets" in value


@dataclass(frozen=True, slots=True)
class QueuedWork:
    """The work of a queued task: its task type, its resolved inputs, and the domain of its queue."""

    task_type: str
    inputs: dict[str, Any]
    domain: str = ""


def queued_task(step: Step, key: Key, ctx: DecisionContext, now: int, work: QueuedWork) -> CreateTask:
    """Return a task in the queue of its type, and of its isolation group and name space if it has any.

    Raises:
        StepRefused: when the run may not use an object that the inputs name.
    """
    task_type = work.task_type
    require_named_objects(step, task_type, work.inputs, ctx)
    return CreateTask(
        new_task(
            step,
            key,
            ctx.run,
            now,
            status=PENDING,
            step_state=_share_of_step(step, ctx),
            input=work.inputs,
            output={},
            domain=work.domain,
            queue=queue_name(task_type, work.domain, step.policy.name_space, step.policy.isolation_group),
            delay_seconds=step.start_delay,
        )
    )


def _share_of_step(step: Step, ctx: DecisionContext) -> TaskState | None:
    """Return the step state with the fairness key that the step gives and its weight, or None if it gives no key."""
    document = step.document
    if not document.get("fairnessKey"):
        return None
    key, weight = ctx.resolve([document["fairnessKey"], document.get("fairnessWeight")])
    return {"fairness": given_share(key, weight, ctx.run.fairness)}


def _async_marker(step: Step) -> dict[str, bool]:
    """Return the input by which a built-in worker knows that a client will complete the task."""
    return {"asyncComplete": True} if step.async_complete else {}


def type_of_queue(queue: str) -> str:
    """Return the type of the tasks that wait in the queue of a built-in worker, which has no domain."""
    return QUEUE_SUFFIX.sub("", queue)


def queue_name(task_type: str, domain: str = "", name_space: str = "", group: str = "") -> str:
    """Return the name of a queue: `[domain:]type[@name space][-isolation group]` (api §1.4)."""
    named = f"{task_type}@{name_space}" if name_space else task_type
    grouped = f"{named}-{group}" if group else named
    return f"{domain}:{grouped}" if domain else grouped


def task_type_of(queue: str, domain: str) -> str:
    """Return the name of a queue without its domain: the task type that workers poll."""
    return queue.removeprefix(f"{domain}:") if domain else queue


RESPONSE = {"statusCode": 200, "reasonPhrase": "OK", "headers": {"Content-Type": ["application/json"]}, "body": {}}
"""`response` in the output of HTTP tasks, for example."""


class BuiltIn(StepType):
    """A task that waits in a queue for a built-in worker. It has no domain (execution §5.3)."""

    is_queued = True
    is_completed_externally = True
    is_built_in = True
    is_isolated = True
    is_forked_by_type = True
    result_comes_from_outside = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        if ctx.input_override(key) is None:
            inputs = self.extend_inputs(step, key, inputs, ctx)
        # The worker receives nothing of the step but its inputs.
        yield queued_task(step, key, ctx, now, QueuedWork(self.type, inputs | _async_marker(step)))


def outcome_of(task: Task, ctx: DecisionContext) -> TaskOutcome:
    return TaskOutcome(
        task.key,
        task.seq,
        task.status,
        task.attempt.reason,
        task.step.name,
        task.attempt.id,
        task.lets_control_pass,
        ctx.attempt_payload(task, "output"),
    )


def value_of(
    expression: Any, language: str, inputs: dict[str, Any], ctx: DecisionContext, field: str = "expression"
) -> ScriptResult:
    """Return the value of the expression, which reads the inputs as `$`, or, in Python, as variables.

    `field`: where the step has the expression.
    """
    if not isinstance(expression, str) or not expression.strip():
        return ScriptResult(error=f"The expression is empty. Set the '{field}' of the step.")
    found = evaluator(language)
    if found is None:
        return ScriptResult(
            error=f"Unknown evaluatorType '{language}'. Use javascript, graaljs, python or value-param."
        )
    if isinstance(found, ScriptLanguage):
        return ctx.script(found.language, expression, inputs)
    return ScriptResult(value=found.evaluate(expression, inputs))


FAIL, RETURN_EXISTING, FAIL_ON_RUNNING = STRATEGIES = ("FAIL", "RETURN_EXISTING", "FAIL_ON_RUNNING")
MAX_LENGTH = 255


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """Permission to start a run under a key (taken from `releases_key_of`), or the run that already holds the key."""

    key: str = ""
    releases_key_of: str = ""
    holder: IdempotencyKeyHolder | None = None


def claim_key(param: Mapping[str, Any], definition: Definition, ctx: DecisionContext, own: Key) -> KeyClaim:
    """Return the claim of a step to the idempotency key that it names.

    Raises:
        StepRefused: when the key or the strategy is invalid, or another run holds the key.
    """
    given, strategy = param.get("idempotencyKey"), param.get("idempotencyStrategy") or FAIL
    key = field_text(given).replace("\0", "")
    if not key:
        return KeyClaim()
    if len(key) > MAX_LENGTH:
        raise StepRefused(f"The idempotency key must have at most {MAX_LENGTH} characters.")
    if strategy not in STRATEGIES:
        raise StepRefused(f"idempotencyStrategy must be one of {', '.join(STRATEGIES)}, not {quote_value(strategy)}.")
    holder = ctx.require(IdempotencyLookup(definition.name, key))
    if holder is None:
        return KeyClaim(key)
    has_ended = holder.status in RUN.final
    if (strategy == FAIL_ON_RUNNING and has_ended) or _is_from_earlier_attempt(holder, ctx, own):
        return KeyClaim(key, releases_key_of=holder.id)
    if strategy == RETURN_EXISTING:
        return KeyClaim(key, holder=holder)
    raise StepRefused(f"The idempotency key '{key}' of {definition.name} is already used by run {holder.id}.")


def _is_from_earlier_attempt(holder: IdempotencyKeyHolder, ctx: DecisionContext, own: Key) -> bool:
    """Return True if this step started the run, which then failed or lost its task, so that it may start another."""
    if holder.parent_id != ctx.run.id:
        return False
    task = next((task for task in ctx.run.tasks.values() if task.id == holder.parent_task), None)
    if task is None:
        return ctx.run.is_whole or not holder.parent_task
    return task.key == own and holder.status != COMPLETED


class Simple(StepType):
    """Waits in the queue of its task type until a worker claims it."""

    type = DEFAULT_TYPE
    label = gettext_noop("Worker task")
    names_task = True
    result_comes_from_outside = True
    is_queued = True
    is_completed_externally = True
    summary = gettext_noop("A worker polls for the task and reports its result")
    search_words = gettext_noop("job activity service code database sql email")
    sample = (step_of(type, "my_task", inputParameters={}),)

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if is_reserved_name(step.name):
            raise StepRefused(
                f"The task {step.name} cannot be executed by name: its branches are part of a step. "
                f"Write a step of type {step.name}, or name another task."
            )
        task_type = conductor_task_type(step.type, step.name)
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        yield queued_task(step, key, ctx, now, QueuedWork(task_type, inputs, ctx.domain(task_type)))

    def conductor_type(self, name: str) -> str:
        return name


def gather_values(thunks: Iterable[Callable[[], Any]]) -> list[Any]:
    """Return the values of all thunks.

    Raises:
        DataRequired: with the requests of all thunks that lack data.
    """
    values: list[Any] = []
    missing: set[DataRequest] = set()
    for thunk in thunks:
        try:
            values.append(thunk())
        except DataRequired as request:
            missing |= request.data_requests
    if missing:
        raise DataRequired(missing)
    return values
