"""Read access for rules and step types: the snapshot and the data loaded so far."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import lru_cache
from typing import Any

from .data_requests import (
    PUBLIC_VARIABLES,
    ActiveDomains,
    AttemptPayload,
    DataRequest,
    DataRequired,
    DefinitionByName,
    Environment,
    IterationOutcomes,
    JoinedOutcomes,
    RunPayload,
    ScriptEvaluation,
    ScriptResult,
    TaskPart,
    UsePermission,
)
from .definition import STEP_STRUCTURES, Definition, Flow, Key, Step, structure_of
from .effects import Effect
from .errors import CONDUCTOR_LENGTH, StepRefused
from .expressions import (
    MISSING,
    NeedsQuickJS,
    evaluate_in_process,
    field_text,
    needed_references,
    parse_template,
    resolve_template,
)
from .masking import redact_for_listeners
from .primitives import JsonValue, fast_replace
from .snapshot import UNKNOWN, Run, Task, TaskIndex

DataCache = Mapping[DataRequest, Any]
MAX_DOMAIN_LENGTH = 128
COMPOSED = "A value that expressions of the workflow compose"
RUN_PAYLOADS = ("input", "output", "variables")


class DecisionContext:
    """Snapshot of a run with the data loaded for it. Reading data that is not loaded raises DataRequired."""

    def __init__(self, run: Run, data: DataCache, given: Mapping[Key, dict[str, Any]] | None = None) -> None:
        """Use `given` as the inputs of tasks that are entered now (set by an operator)."""
        self.run, self.data, self.given = run, data, given or {}
        self._sorted = TaskIndex(run)
        self._iteration_path: tuple[int, ...] = ()
        self._loops: list[Step | None] = []
        self._is_redacted = False

    def at(self, step: Step, key: Key, source: Task | None = None, place: int = 0) -> "DecisionContext":
        """Return this context as seen from a step. In an item of a FOR_EACH, references mean the tasks of that item.

        `place`: the number of tasks created in the same effect list before this one.
        """
        if not (step.loops or place):
            return self
        seen = copy(self)
        seen.run = fast_replace(self.run, next_seq=self.run.next_seq + place) if place else self.run
        seen._iteration_path, seen._loops = key.iteration_path, [self.run.step(ref, source) for ref in step.loops]
        return seen

    def for_conditions(self) -> "DecisionContext":
        """Return this context for the condition of a breakpoint, which reads what the pages of the run show.

        Masked values are `***`, and environment values are missing: the error of a condition may contain what it reads.
        """
        limited = copy(self)
        limited._is_redacted = True
        return limited

    def require_use(self, target_type: str, name: str, *, is_authored: bool) -> None:
        """Check that the run may use an object: an author has named it, or its starter has the permission.

        Raises:
            StepRefused: when the name comes from data and the starter lacks the permission.
        """
        is_authored = is_authored and self.run.definition.allowed_secrets is None
        if is_authored or not self.run.starter_id:
            return
        if refusal := self.require(UsePermission(target_type, name)):
            raise StepRefused(refusal)

    def inside(self, loop: Key) -> Sequence[Task]:
        """Return the tasks of the snapshot directly inside a loop, in any iteration; not those of nested loops."""
        return self._sorted.by_loop.get(loop, ())

    def require(self, request: DataRequest) -> Any:
        """Return the value of a data request.

        Raises:
            DataRequired: when it is not loaded.
        """
        try:
            return self.data[request]
        except KeyError:
            raise DataRequired({request}) from None

    @property
    def knows_open_tasks(self) -> bool:
        """Return True if loaded data shows that a task is open that the snapshot does not hold."""
        return any(
            answer is None
            for request, answer in self.data.items()
            if isinstance(request, JoinedOutcomes | IterationOutcomes)
        )

    def resolve(self, template: JsonValue, own: Mapping[str, Any] | None = None, what: str = COMPOSED) -> Any:
        """Return the template with each expression replaced by its value. `own`: names such as CPEWF_TASK_ID.

        Raises:
            DataRequired: when a value is not loaded.
            PayloadOverLimit: when it exceeds the maximum size of a payload. `what`: the subject of the message.
        """
        known = own or {}
        pairs = (pair for pair in needed_references(template) if pair[0] not in known)
        unanswered = {q for pair in pairs if (q := self._request_for(*pair)) and q not in self.data}
        if unanswered:
            raise DataRequired(unanswered)
        read = self._redacted_value if self._is_redacted else self._value
        max_bytes = self.run.definition.limits.max_value_bytes
        return resolve_template(template, lambda root, key: read(root, key, known), max_bytes, what)

    def secret_ranges(self, text: str, own: Mapping[str, Any]) -> tuple[str, list[list[int]]]:
        """Return a text of a template that was resolved with the same `own`, and where it names secrets.

        Raises:
            DataRequired: when a value is not loaded.
        """
        return parse_template(text).secret_ranges(lambda root, key: self._value(root, key, own))

    def script(self, language: str, source: str, inputs: Mapping[str, Any]) -> ScriptResult:
        """Return the result of a script.

        Raises:
            DataRequired: when a helper process must evaluate it.
        """
        if language == "javascript":
            with suppress(NeedsQuickJS):
                return ScriptResult(evaluate_in_process(source, inputs))
        text = json.dumps(inputs, default=str)
        run = self.run
        return self.require(ScriptEvaluation(language, source, text, run.definition.name, run.starter_id))

    def definition(self, name: str, version: int | None) -> Definition | None:
        """Return the definition with this name, the newest if `version` is None; None if there is none."""
        return self.require(DefinitionByName(name, version))

    def input(self) -> dict[str, Any]:
        return self._run_payload("input")

    def output(self) -> dict[str, Any]:
        return self._run_payload("output")

    def variables(self) -> dict[str, Any]:
        return self._run_payload("variables")

    def attempt_payload(self, task: Task, part: str) -> Any:
        """Return the input or output of a task's newest attempt."""
        value = getattr(task.attempt, part)
        return self.require(AttemptPayload(task.attempt.id, part)) if value is UNKNOWN else value

    def input_of_attempt(self, key: Key, attempt_id: str) -> Any:
        """Return the input of a task's newest attempt, whose id the outcome of the task has."""
        task = self.run.tasks.get(key)
        if task is not None and task.attempt.id == attempt_id and task.attempt.input is not UNKNOWN:
            return task.attempt.input
        return self.require(AttemptPayload(attempt_id, "input"))

    def task_part(self, ref: str, part: str, within: tuple[int, ...]) -> Any:
        """Return the `input`, `output` or `facts` of the newest task of a reference, or None if it has no task.

        `within`: the iteration path of the task.
        """
        task = self._sorted.newest(ref, within)
        if task is not None:
            if part == "facts":
                return {name: fact(self.run, task) for name, fact in TASK_FACTS.items()}
            return self.attempt_payload(task, part)
        return None if self.run.is_whole else self.require(TaskPart(ref, part, within))

    def input_override(self, key: Key) -> dict[str, Any] | None:
        """Return the input that an operator set for this task, now or when it was created; None if none was set."""
        task = self.run.tasks.get(key)
        return self.given.get(key, task.step_state.get("input") if task else None)

    def domain(self, task_type: str) -> str:
        """Return the domain in which a task of this type is queued (api §5.8)."""
        wanted = field_text(self.run.domains.get(task_type, self.run.domains.get("*", ""))).replace("\0", "")
        names = [name.strip()[:MAX_DOMAIN_LENGTH] for name in wanted.split(",") if name.strip()]
        if not names:
            return ""
        real = [name for name in names if name.upper() != "NO_DOMAIN"]
        active = self.require(ActiveDomains(task_type)) if len(names) > 1 else frozenset()
        chosen = next((name for name in real if name in active), names[-1])
        return "" if chosen.upper() == "NO_DOMAIN" else chosen

    def _run_payload(self, part: str) -> Any:
        value = getattr(self.run, part)
        return self.require(RunPayload(part)) if value is UNKNOWN else value

    def _request_for(self, root: str, key: str) -> DataRequest | None:
        """Return the request for the data behind a reference; None if it is loaded or does not exist."""
        if root == "workflow":
            if key in RUN_PAYLOADS and getattr(self.run, key) is UNKNOWN:
                return RunPayload(key)
            return Environment() if key == "env" else None
        if not key:
            return None
        ref, within = self._resolve_reference(root)
        task = self._sorted.newest(ref, within)
        if task is None:
            if self.run.is_whole or (not self.run.has_begun and root in self.run.definition.steps):
                return None
            part = key if key in ("input", "output") else "facts"
            return TaskPart(ref, part, within, self._is_deep(ref, within))
        if key in ("input", "output") and getattr(task.attempt, key) is UNKNOWN:
            return AttemptPayload(task.attempt.id, key)
        return None

    def _resolve_reference(self, root: str) -> tuple[str, tuple[int, ...]]:
        """Return the step reference that a name stands for in this context, and the iteration path that it is bound to.

        Inside a FOR_EACH, its own name stands for the current item, and the name of a sibling step for its task in
        this item.
        """
        for depth in range(len(self._loops), 0, -1):
            around = self._loops[depth - 1]
            if around is None or not structure_of(around.type).item_type:
                continue
            if root == around.ref:
                return around.heads[0], self._iteration_path[:depth]
            if root in around.inside:
                return root, self._iteration_path[:depth]
        return root, ()

    def _is_deep(self, ref: str, within: tuple[int, ...]) -> bool:
        """Return True if the step is in more loops than `within` has iterations."""
        step = self.run.definition.step(ref)
        return bool(within) and (step is None or len(step.loops) > len(within))

    def _value(self, root: str, key: str, own: Mapping[str, Any]) -> Any:
        if root in own:
            return own[root] if not key else own[root].get(key, MISSING) if isinstance(own[root], dict) else MISSING
        if root == "workflow":
            if key in RUN_PAYLOADS:
                return self._run_payload(key)
            if key == "env":
                return self.require(Environment())
            return RUN_FACTS[key](self.run) if key in RUN_FACTS else MISSING
        if not key:
            return self._environment(root)
        task = self._sorted.newest(*self._resolve_reference(root))
        if task is None:
            request = self._request_for(root, key)
            return self._loaded_part(request, key) if request else MISSING
        return self._task_value(task, key)

    def _redacted_value(self, root: str, key: str, own: Mapping[str, Any]) -> Any:
        if not key or key == "env":
            return MISSING
        value = self._value(root, key, own)
        return value if value is MISSING else redact_for_listeners(value, self.run.definition)

    def _environment(self, name: str) -> Any:
        value = self.require(Environment()).get(name) if name in PUBLIC_VARIABLES else None
        return MISSING if value is None else value

    def _loaded_part(self, request: DataRequest, key: str) -> Any:
        value = self.require(request)
        if value is None:
            return MISSING
        return value if key in ("input", "output") else value.get(key, MISSING)

    def _task_value(self, task: Task, key: str) -> Any:
        if key in ("input", "output"):
            return self.attempt_payload(task, key)
        return TASK_FACTS[key](self.run, task) if key in TASK_FACTS else MISSING


RUN_FACTS: dict[str, Callable[[Run], Any]] = {
    "status": lambda run: run.status,
    "workflowId": lambda run: run.id,
    "parentWorkflowId": lambda run: run.parent_id or None,
    "parentWorkflowTaskId": lambda run: run.parent_attempt_id or None,
    "workflowType": lambda run: run.definition.name,
    "version": lambda run: run.definition.version,
    "correlationId": lambda run: run.correlation_id or None,
    "reasonForIncompletion": lambda run: run.reason or None,
    "schemaVersion": lambda run: run.definition.document.get("schemaVersion", 2),
}
"""Fields of a run that expressions can read (execution §9.2)."""

WIRE_STATUS = {
    "PENDING": "SCHEDULED",
    "LEASED": "IN_PROGRESS",
    "EXPIRED": "TIMED_OUT",
    "FAILED_FOR_GOOD": "FAILED_WITH_TERMINAL_ERROR",
}
"""Statuses of attempts in the workflow language, where they differ from ours."""


def conductor_status(attempt_status: str, task_status: str) -> str:
    """Return the status of an attempt in the workflow language."""
    if task_status in ("COMPLETED_WITH_ERRORS", "SKIPPED"):
        return task_status
    return WIRE_STATUS.get(attempt_status, attempt_status)


Command = Callable[[Run, DecisionContext, int], Iterable[Effect]]
"""A command: a function from a snapshot and the time (epoch milliseconds) to effects."""


class WithoutRules:
    """Command that is applied without rules: due timers are not handled before it, and nothing follows from it.

    `publishes`: the events for listeners are resolved, as for every command. `simpler`: the command for the same end
    that evaluates less, for a run which this one cannot change.
    """

    def __init__(
        self, command: Command, *, publishes: bool = True, simpler: "Callable[[], WithoutRules] | None" = None
    ) -> None:
        self.command, self.publishes, self.simpler = command, publishes, simpler

    def __call__(self, run: Run, ctx: DecisionContext, now: int) -> Iterable[Effect]:
        return self.command(run, ctx, now)


def conductor_task_type(step_type: str, name: str) -> str:
    """Return the `taskType` of a task (execution §1.5)."""
    structure = STEP_STRUCTURES.get(step_type)
    return structure.conductor_type(name) if structure else step_type


TASK_FACTS: dict[str, Callable[[Run, Task], Any]] = {
    "taskType": lambda run, task: conductor_task_type(task.step.type, task.step.name),
    "status": lambda run, task: conductor_status(task.attempt.status, task.status),
    "referenceTaskName": lambda run, task: str(task.key),
    "retryCount": lambda run, task: task.attempt.number,
    "correlationId": lambda run, task: run.correlation_id or None,
    "pollCount": lambda run, task: task.attempt.poll_count,
    "taskDefName": lambda run, task: task.step.name,
    "scheduledTime": lambda run, task: task.attempt.scheduled_at,
    "startTime": lambda run, task: task.attempt.started_at or 0,
    "endTime": lambda run, task: task.attempt.ended_at or 0,
    "workflowInstanceId": lambda run, task: run.id,
    "taskId": lambda run, task: task.attempt.id,
    "reasonForIncompletion": lambda run, task: task.attempt.reason[:CONDUCTOR_LENGTH] or None,
    "callbackAfterSeconds": lambda run, task: task.attempt.callback_ms // 1000,
    "workerId": lambda run, task: task.attempt.worker or None,
    "iteration": lambda run, task: task.key.iteration_path[-1] if task.key.iteration_path else task.iteration,
}
"""Fields of a task that expressions can read (execution §9.2)."""


StepLookup = Callable[[str], Step | None]


@lru_cache(maxsize=20_000)
def dependents_of(definition: Definition, ref: str) -> frozenset[str]:
    """Return the references of the steps that may wait for this step of the definition."""
    return dependents_among(definition.step, ref)


def dependents_among(find: StepLookup, ref: str) -> frozenset[str]:
    """Return the references of the steps that may wait for `ref`, looking up steps with `find`.

    A following step may end as soon as it receives control, and so may the steps after a join or loop that waited.
    Steps that control can reach only from here have not started, so they do not wait.
    """
    step = find(ref)
    waits = {ref, *(step.loops if step else ())}
    later: set[str] = set()
    passed: set[str] = set()
    to_pass = list(waits)
    while to_pass:
        step = find(to_pass.pop())
        if step is None or step.ref in passed:
            continue
        passed.add(step.ref)
        followers = {*_next_steps(step, begins=step.ref not in waits)}
        later |= followers
        waits |= {*step.joined_by}
        to_pass += [*followers, *step.joined_by]
    return frozenset(waits - later - {ref})


def _next_steps(step: Step, begins: bool) -> Iterable[str]:
    """Return where control goes from a step; a loop that started earlier passes control on only."""
    heads = step.heads if begins or structure_of(step.type).flow is Flow.CHOICE else ()
    return filter(None, (*heads, step.follower))


def dependent_keys(refs: Iterable[str], find: StepLookup, iteration_path: tuple[int, ...]) -> Iterable[Key]:
    """Yield the keys of the waiting steps, as seen from a task with this iteration path."""
    for ref in refs:
        step = find(ref)
        yield Key(ref, iteration_path[: len(step.loops)] if step else iteration_path)
