"""TRY_CATCH: a body whose failures lead to a handler instead of the end of the run. Not a type of Conductor.

`tryTasks` are executed first. When one of them fails finally and is neither optional nor permissive, the other open
tasks of the body are canceled, and control goes to the first of `catchCases` that matches, or to `catchDefault`:

    {"type": "TRY_CATCH", "name": "paid", "taskReferenceName": "paid",
     "tryTasks": [...],
     "catchCases": [{"match": {"status": "TIMED_OUT", "taskRef": ["charge"]}, "tasks": [...]},
                    {"match": {"reason": "card .* refused"}, "tasks": [...]}],
     "catchDefault": [...],
     "finallyTasks": [...]}

A case matches if all members of its `match` do: `status` (FAILED, FAILED_WITH_TERMINAL_ERROR, TIMED_OUT, CANCELED),
`taskRef` and `taskType` (each a text or a list of texts), `reason` (a regular expression that occurs anywhere in it).
Handlers read `${paid.output.error.taskRef}`, and `taskType`, `taskId`, `status`, `reason` and `attempt` there. A case
without tasks ignores the failure.

`finallyTasks` are always executed last. If nothing matches, or a handler fails, the step then fails like that task. The
innermost step of this type around a failure handles it, or passes it to the next one.

References have a suffix as in loops: `__1` in the body, `__2` in the handler, `__3` in `finallyTasks`. A TERMINATE and
the timeout of the workflow end the run in any case; a task's `timeoutPolicy` TIME_OUT_WF ends the body only.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ..data_requests import DataRequired, WholeRun
from ..decision_context import DecisionContext, conductor_status, conductor_task_type
from ..definition import Body, Document, Flow, Key, Step, as_steps, body_at, body_with, walk
from ..document.fields import STEPS, FieldSpec, ListOf, NamedTable, ObjectOf, read_mapping
from ..effects import Effect, TransitionAttempt, UpdateTask
from ..errors import StepRefused
from ..expressions.patterns import BadPattern, PatternTooSlow, compile_pattern, full_match
from ..primitives import JsonValue
from ..snapshot import Run, StepState, Task, TaskState
from .base import StepType, complete_task, engine_held_task, gettext_noop, resolve_inputs, step_of, unknown_word_message
from .loops import ENDS_AS, first_failure, outcomes_of_iteration, outputs_by_ref

TRY, CATCH, FINALLY = 1, 2, 3
"""Its phases. They are numbered like the iterations of a loop."""
NAMES = {TRY: "try", CATCH: "catch", FINALLY: "finally"}
CATCH_DEFAULT = "catch default"
MATCHED = ("status", "reason", "taskRef", "taskType")
FAILED_STATUSES = ("FAILED", "FAILED_WITH_TERMINAL_ERROR", "TIMED_OUT", "CANCELED")
CATCH_CASE = NamedTable("CatchCase", FieldSpec("match", read_mapping), FieldSpec("tasks", STEPS))
FIELDS = (
    FieldSpec("tryTasks", STEPS),
    FieldSpec("catchCases", ListOf(ObjectOf(CATCH_CASE))),
    FieldSpec("catchDefault", STEPS),
    FieldSpec("finallyTasks", STEPS),
)


class TryCatchState(TaskState, total=False):
    """State of a TRY_CATCH.

    `handler`: the body that handles the failure. `failed_in`, `failure`: phase and failure at its end.
    """

    handler: str
    failed_in: int
    failure: dict[str, Any]


class TryCatch(StepType):
    """Active during its body, its handler and its `finallyTasks`; `iteration` is the phase."""

    type = "TRY_CATCH"
    label = gettext_noop("Try")
    flow = Flow.PHASES
    fields = FIELDS
    required_fields = ("tryTasks",)
    waits_for_tasks = True
    is_retried = False
    is_reopened = True
    counts_iterations = True
    handles_failures = True
    has_phases = True
    summary = gettext_noop("Handle failures of the steps inside")
    search_words = gettext_noop("catch error exception finally")
    sample = (step_of(type, "try", tryTasks=[], catchCases=[{"match": {}, "tasks": []}]),)

    def bodies(self, step: Document) -> Iterator[Body]:
        yield body_at(step, "tryTasks", name=NAMES[TRY], label="try", phase=TRY)
        for number, case in enumerate(as_steps(step.get("catchCases"))):
            steps = as_steps(case.get("tasks")) if isinstance(case, dict) else []
            place = f"catchCases[{number}].tasks"
            label = _handler_label(case, number)
            yield Body(f"catch {number}", ("catchCases", number, "tasks"), place, steps, label, CATCH)
        yield from (body for body in _optional_bodies(step) if body.steps)

    def absent_bodies(self, step: Document) -> Iterator[Body]:
        return (body for body in _optional_bodies(step) if not body.steps)

    def check(self, step: Document, template: Document) -> Iterator[str]:
        yield from super().check(step, template)
        cases, name = step.get("catchCases") or (), step.get("name", "")
        if not (cases or step.get("catchDefault") or step.get("finallyTasks")):
            yield f"taskType: {self.type} taskName: {name} needs catchCases, catchDefault or finallyTasks"
        refs = {spot.ref for spot in walk(step.get("tryTasks"))}
        for index, case in enumerate(cases):
            for problem in match_errors((case or {}).get("match") or {}, refs):
                yield f"catchCases[{index}].match of taskName: {name}: {problem}"

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if not step.bodies.get(NAMES[TRY]):
            raise StepRefused(f"{step.ref} has an empty body: add steps to 'tryTasks'.")
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        yield engine_held_task(step, key, ctx.run, now, iteration=TRY, input=inputs, output={})

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        outcomes = outcomes_of_iteration(task, ctx)
        if outcomes is None or (not outcomes and _head_of_phase(task)):
            return
        if failure := first_failure(outcomes):
            if failure.key not in ctx.run.tasks:
                raise DataRequired({WholeRun()})
            yield from self.on_child_failure(task, ctx.run.tasks[failure.key], ctx, now)
            return
        output = {**ctx.attempt_payload(task, "output"), NAMES[task.iteration]: outputs_by_ref(outcomes)}
        yield from _end_phase(task, task.iteration, output, dict(task.step_state), now)

    def on_child_failure(self, task: Task, failed: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """Continue after the failure of a task in the current phase, when nothing else of the phase is open."""
        error = describe_failure(failed)
        output = {"error": error, **ctx.attempt_payload(task, "output")}
        name = _handler_for(task.step, error) if task.iteration == TRY else None
        if name is None:
            step_state = {"failed_in": task.iteration, "failure": error, **task.step_state}
            yield from _end_phase(task, task.iteration, output, step_state, now)
            return
        output, step_state = {**output, "caughtBy": name}, {**task.step_state, "handler": name}
        if task.step.bodies.get(name):
            yield _enter_phase(task, CATCH, output, step_state, now)
        else:
            yield from _end_phase(task, CATCH, output, step_state, now)

    def successors(self, task: Task) -> Iterator[Key]:
        if not task.is_open:
            yield from super().successors(task)
        elif task.attempt.is_open and (head := _head_of_phase(task)):
            yield Key(head, (*task.key.iteration_path, task.iteration))

    def failed_iteration(self, task: Task) -> int | None:
        return cast(TryCatchState, task.step_state).get("failed_in")

    def upgraded_state(self, task: Task, old: Task | None, run: Run) -> StepState:
        if (handler := task.step_state.get("handler")) is None:
            return task.step_state
        # The handler is the body that contains the tasks of the handler in the new version.
        depth, catch = len(task.key.iteration_path), (*task.key.iteration_path, CATCH)
        tasks = (each for each in run.tasks.values() if task.key.ref in each.step.loops[depth : depth + 1])
        refs = (each.key.ref for each in tasks if each.key.iteration_path[: depth + 1] == catch)
        bodies = (body_with(task.step.document, ref) for ref in refs)
        return {**task.step_state, "handler": next((body.name for body in bodies if body), handler)}

    def reopen(self, task: Task, ctx: DecisionContext, now: int, iteration: int | None = None) -> Iterator[Effect]:
        yield from super().reopen(task, ctx, now)
        if iteration is not None:
            step_state, output = _state_before_phase(iteration, task.step_state, ctx.attempt_payload(task, "output"))
            yield UpdateTask(task.key, {"iteration": iteration, "step_state": step_state}, {"output": output})


def _optional_bodies(step: Document) -> Iterator[Body]:
    others = body_at(step, "catchDefault", name=CATCH_DEFAULT, label="catch all others", phase=CATCH)
    yield others._replace(is_optional=True)
    last = body_at(step, "finallyTasks", name=NAMES[FINALLY], label="finally", phase=FINALLY)
    yield last._replace(is_final=True, is_optional=True)


def _head_of_phase(task: Task) -> str | None:
    """Return the head of the current phase; None if the definition after an upgrade has no such phase."""
    body = cast(TryCatchState, task.step_state)["handler"] if task.iteration == CATCH else NAMES[task.iteration]
    return task.step.bodies.get(body)


def _end_phase(
    task: Task, phase: int, output: dict[str, Any], step_state: dict[str, Any], now: int
) -> Iterator[Effect]:
    """Yield the effects that start the last phase after another one, or end the step."""
    if phase != FINALLY and task.step.bodies.get(NAMES[FINALLY]):
        yield _enter_phase(task, FINALLY, output, step_state, now)
    elif "failed_in" not in step_state:
        yield from complete_task(task, now, output)
    else:
        error = step_state["failure"]
        yield UpdateTask(task.key, {"step_state": step_state})
        facts = {"reason": error["reason"], "output": output}
        yield TransitionAttempt(task.key, ENDS_AS.get(error["status"], "fail"), now, facts)


def _state_before_phase(
    phase: int, step_state: Mapping[str, Any], output: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state and the output of the step as they were when this phase started."""
    later_keys = {NAMES[later] for later in range(phase, FINALLY + 1)}
    if step_state.get("failed_in", 0) >= phase:
        later_keys |= {"failed_in", "failure"} if "handler" in step_state else {"failed_in", "failure", "error"}
    if phase == TRY:
        later_keys |= {"handler", "caughtBy", "error"}
    kept, previous_output = ({k: v for k, v in each.items() if k not in later_keys} for each in (step_state, output))
    return kept, previous_output


def _enter_phase(task: Task, phase: int, output: dict[str, Any], step_state: dict[str, Any], now: int) -> UpdateTask:
    """Return the effect that starts a phase."""
    return UpdateTask(task.key, {"iteration": phase, "step_state": step_state}, {"output": output, "updated_at": now})


def describe_failure(failed: Task) -> dict[str, Any]:
    """Return a failure as handlers read it."""
    name = failed.step.name
    return {
        "taskRef": failed.key.ref,
        "taskType": conductor_task_type(failed.step.type, name),
        "taskId": failed.attempt.id,
        "status": conductor_status(failed.attempt.status, failed.status),
        "reason": failed.attempt.reason,
        "attempt": failed.attempt.number + 1,
    }


def _handler_for(step: Step, error: Mapping[str, Any]) -> str | None:
    """Return the name of the body that handles the failure, or None."""
    for index, case in enumerate(step.document.get("catchCases") or ()):
        if _matches_failure(case.get("match") or {}, error):
            return f"catch {index}"
    return CATCH_DEFAULT if step.bodies.get(CATCH_DEFAULT) else None


def _matches_failure(match: Mapping[str, Any], error: Mapping[str, Any]) -> bool:
    """Return True if the failure matches all members of `match`."""
    for field in ("status", "taskRef", "taskType"):
        expected = match.get(field)
        if expected not in (None, "") and error[field] not in (expected if isinstance(expected, list) else [expected]):
            return False
    pattern = match.get("reason")
    return pattern in (None, "") or _is_in(str(pattern), error["reason"])


def _is_in(pattern: str, reason: str) -> bool:
    try:
        return full_match(f".*(?:{pattern}).*", reason, "s")
    except (PatternTooSlow, ValueError):
        return False


def match_errors(match: Mapping[str, Any], refs: set[str]) -> Iterator[str]:
    """Yield the errors in the `match` of a handler. `refs`: the steps whose failures it can handle."""
    for field, value in match.items():
        if value is None:
            continue
        values = value if isinstance(value, list) else [value]
        if field not in MATCHED:
            yield unknown_word_message(field, MATCHED)
        elif not all(isinstance(each, str) for each in values) or (field == "reason" and len(values) != 1):
            yield f"{field} must be a text" + ("" if field == "reason" else ", or a list of texts")
        elif field == "reason":
            yield from _pattern_errors(values[0])
        elif field in ("status", "taskRef"):
            known = FAILED_STATUSES if field == "status" else refs
            yield from (unknown_word_message(each, known) for each in values if each not in known)


def _pattern_errors(pattern: str) -> Iterator[str]:
    try:
        compile_pattern(pattern)
    except BadPattern as problem:
        yield f"reason {pattern[:100]!r} is not supported: {problem}"


def _handler_label(case: JsonValue, number: int) -> str:
    """Return a short description of what a handler matches."""
    match = case.get("match") if isinstance(case, dict) else None
    words = [str(value) for value in match.values() if isinstance(value, str)] if isinstance(match, dict) else []
    return f"catch {' '.join(words)}" if words else f"catch {number + 1}"
