"""Steps with parallel branches: FORK_JOIN, FORK_JOIN_DYNAMIC, JOIN, EXCLUSIVE_JOIN."""

import json
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, cast

from ..data_requests import (
    ABSENT,
    DataRequired,
    JoinedOutcomes,
    ReferencesInUse,
    TaskAt,
    TaskDefinitionByName,
    TaskOutcome,
    WholeRun,
)
from ..decision_context import DecisionContext
from ..definition import DEFAULT_TYPE, Body, Definition, Document, Flow, Key, Step, as_steps, structure_of
from ..document.fields import coerce_step
from ..document.reading import extract_definitions, layout_branch, layout_steps
from ..effects import Effect, ResolveTask, TransitionAttempt
from ..errors import RunCannotContinue, StepRefused, ValidationFailed
from ..expressions import field_text
from ..masking import redact_for_listeners
from ..primitives import JsonValue
from ..secret_places import limit_runtime_metadata
from ..snapshot import Run, StepState, Task, TaskState
from ..states import CANCELED, COMPLETED_WITH_ERRORS, SKIPPED
from .base import (
    NAMES,
    StepMember,
    StepType,
    complete_task,
    completed_task,
    engine_held_task,
    fail_task,
    gather_values,
    gettext_noop,
    outcome_of,
    resolve_inputs,
    step_of,
)
from .decisions import is_choice
from .sub_workflows import SubWorkflow, version_of


class JoinState(TaskState, total=False):
    """State of a JOIN. `expected`: number of tasks to join. `has_cases`: one of them is a step with cases."""

    expected: int
    has_cases: bool


class Join(StepType):
    """Completes with the outputs of the joined tasks, by reference (execution §8.7)."""

    type = "JOIN"
    label = gettext_noop("Join")
    flow = Flow.JOIN
    ends_forks = True
    forwards_failures = True
    shows_isolation_group = True
    waits_for_tasks = True
    is_retried = False
    is_reopened = True
    members = (StepMember("joinOn", gettext_noop("Waits for"), NAMES, gettext_noop("References, comma-separated")),)

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        fork = _fork_of(ctx.run, step, key)
        refs = list(step.joins) if fork is None else list(fork.step_state["forked"])
        step_state: JoinState = {"expected": len(set(refs))}
        if fork is not None and fork.step_state.get("has_cases"):
            step_state["has_cases"] = True
        yield engine_held_task(
            step, key, ctx.run, now, step_state=step_state, input={**inputs, "joinOn": refs}, output={}
        )

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        known = {t.key: t for t in ctx.run.tasks.values() if is_joined(t, task)}
        if any(t.is_open for t in known.values()) or not ctx.run.has_changes_for(task, known):
            return
        state = cast(JoinState, task.step_state)
        missing = state.get("expected", len(set(task.step.joins))) - len(known)
        if state.get("has_cases"):
            if not ctx.run.is_whole:
                raise DataRequired({WholeRun()})
            # A dynamic branch that is a switch continues in the chosen case, unless that is empty.
            missing += sum(bool(is_choice(t.step) and t.step_state.get("head")) for t in known.values())
        outcomes: Any
        if ctx.run.is_whole:
            outcomes = [] if missing <= 0 else None
        elif missing > 0 and _shares_tasks(task, ctx.run):
            raise DataRequired({WholeRun()})
        else:
            outcomes = ctx.require(JoinedOutcomes(task.key, frozenset(known), missing)) if missing > 0 else []
        if outcomes in (None, ABSENT):
            return
        here = gather_values(partial(outcome_of, each, ctx) for each in known.values())
        yield from _join_result(task, [*here, *outcomes], now)

    def upgraded_state(self, task: Task, old: Task | None, run: Run) -> StepState:
        if "expected" not in task.step_state or not task.step.joins:
            return task.step_state
        return {**task.step_state, "expected": len(set(task.step.joins))}


def _shares_tasks(join: Task, run: Run) -> bool:
    """Return True if another join waits for the same task. A task's row stores only one of its joins."""
    steps = (run.step(ref, join) for ref in join.step.joins)
    return any(step is not None and len(step.joined_by) > 1 for step in steps)


def is_joined(task: Task, join: Task) -> bool:
    if task.key.iteration_path != join.key.iteration_path:
        return False
    return task.joined_by == join.key.ref or join.key.ref in task.step.joined_by


def _fork_of(run: Run, join: Step, key: Key) -> Task | None:
    """Return the dynamic fork before this join in this iteration; None after a FORK_JOIN."""
    forks = (
        t
        for t in run.tasks.values()
        if t.key.iteration_path == key.iteration_path and t.step.follower == join.ref and "forked" in t.step_state
    )
    return next(forks, None)


def _join_result(task: Task, outcomes: list[TaskOutcome], now: int) -> Iterator[Effect]:
    """Yield the effects that end the join once all joined tasks have ended."""
    outcomes = sorted(outcomes, key=lambda outcome: outcome.seq)
    output = {str(outcome.key): outcome.output for outcome in outcomes if outcome.output}
    failures = [
        outcome for outcome in outcomes if outcome.status not in ("COMPLETED", COMPLETED_WITH_ERRORS, "SKIPPED")
    ]
    with_errors = [outcome for outcome in outcomes if outcome.status == COMPLETED_WITH_ERRORS]
    if failures and all(outcome.status == CANCELED for outcome in failures):
        yield from fail_task(task, now, _reasons(failures), output, event="cancel")
    elif failures:
        yield from fail_task(task, now, _reasons(failures), output)
    elif with_errors:
        reason = " ".join(f"{outcome.name}/{outcome.attempt_id}" for outcome in with_errors)
        yield TransitionAttempt(task.key, "complete", now, {"output": output, "reason": reason})
        yield ResolveTask(task.key, "complete_with_errors")
    else:
        yield from complete_task(task, now, output)


def _reasons(outcomes: list[TaskOutcome]) -> str:
    return " ".join(outcome.reason for outcome in outcomes if outcome.reason) or "A joined task did not succeed."


class ExclusiveJoin(StepType):
    """Ends with the first joined task that has ended, or with the first of its default tasks (execution §8.8)."""

    type = "EXCLUSIVE_JOIN"
    label = gettext_noop("Exclusive join")
    flow = Flow.JOIN
    forwards_failures = True
    waits_for_tasks = True
    is_retried = False
    is_reopened = True
    members = (StepMember("joinOn", gettext_noop("Waits for"), NAMES),)

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        yield engine_held_task(step, key, ctx.run, now, input={**inputs, "joinOn": list(step.joins)}, output={})

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        chosen = _find_deciding_task(task, ctx)
        if chosen is None:
            return
        output = ctx.attempt_payload(chosen, "output")
        if chosen.succeeded:
            yield from complete_task(task, now, output)
        else:
            yield from fail_task(task, now, chosen.attempt.reason, output)

    def on_deadlock(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        # The last task of the branch that was taken was skipped. Its given output is the output of the branch.
        found = (_find_run_task(ctx, Key(ref, task.key.iteration_path)) for ref in task.step.joins)
        if skipped := next((each for each in found if each is not None and each.status == SKIPPED), None):
            yield from complete_task(task, now, ctx.attempt_payload(skipped, "output"))


def _find_deciding_task(task: Task, ctx: DecisionContext) -> Task | None:
    defaults = task.step.document.get("defaultExclusiveJoinTask") or []
    if not ctx.run.has_changes_for(task, (Key(ref, task.key.iteration_path) for ref in (*task.step.joins, *defaults))):
        return None
    for refs in (task.step.joins, defaults):
        tasks = gather_values(partial(_find_run_task, ctx, Key(ref, task.key.iteration_path)) for ref in refs)
        first = next((t for t in tasks if t is not None and t.status != SKIPPED), None)
        if first is not None and not first.is_open:
            return first
    return None


def _find_run_task(ctx: DecisionContext, key: Key) -> Task | None:
    """Return the task with this key, loading it if the snapshot does not hold it, or None."""
    if key in ctx.run.tasks or ctx.run.is_whole:
        return ctx.run.tasks.get(key)
    return ctx.require(TaskAt(key))


MAX_NAME_LENGTH = 255
MAX_EXCERPT_LENGTH = 500


def branch_documents(
    step: Step, inputs: dict[str, Any], has_forked: Callable[[], bool], definition: Definition
) -> list[dict[str, Any]]:
    """Return one step document for each branch.

    `has_forked`: returns True if the run has created dynamic branches before. `definition`: the run's; values that it
    masks do not appear in reasons.

    Raises:
        RunCannotContinue: when the input contains no list of tasks.
        StepRefused: when a task of the list is invalid.
    """
    if isinstance(inputs.get("forkTaskInputs"), list):
        documents = _from_element_list(step, inputs, has_forked)
    elif step.document.get("dynamicForkTasksParam"):
        documents = _from_task_list(step, inputs, definition)
    else:
        documents = _from_legacy_parameter(step, inputs, definition)
    return [_check_branch_document(document, step) for document in documents]


def _from_element_list(step: Step, inputs: dict[str, Any], has_forked: Callable[[], bool]) -> list[dict[str, Any]]:
    """Return one task for each element of `forkTaskInputs`."""
    workflow = inputs.get("forkTaskWorkflow")
    kind = SubWorkflow.type if workflow else field_text(inputs.get("forkTaskType")) or DEFAULT_TYPE
    name = field_text(inputs.get("forkTaskName") or workflow) or (
        kind if structure_of(kind).is_forked_by_type else step.ref
    )
    prefix = f"_{step.ref}_{name}" if has_forked() else f"_{name}"
    return [
        _element_document(step, inputs, element, index, kind, name, f"{prefix}_{index}")
        for index, element in enumerate(inputs["forkTaskInputs"])
    ]


def _element_document(
    step: Step, inputs: dict[str, Any], element: JsonValue, index: int, kind: str, name: str, ref: str
) -> dict[str, Any]:
    members = element if isinstance(element, dict) else {"input": element}
    document = {
        "name": name,
        "taskReferenceName": ref,
        "type": kind,
        "optional": step.optional,
        "inputParameters": {**members, "__index": index},
    }
    if kind == SubWorkflow.type:
        document["subWorkflowParam"] = _sub_workflow_param(inputs, members)
    return document


def _sub_workflow_param(inputs: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    version = version_of(inputs.get("forkTaskWorkflowVersion"), "forkTaskWorkflowVersion")
    param = {"name": inputs.get("forkTaskWorkflow"), "version": version}
    return param | ({"taskToDomain": given["taskToDomain"]} if isinstance(given.get("taskToDomain"), dict) else {})


def _from_task_list(step: Step, inputs: dict[str, Any], definition: Definition) -> list[dict[str, Any]]:
    """Return the step documents of a list, with their inputs from a map by reference."""
    name, inputs_name = step.document["dynamicForkTasksParam"], step.document.get("dynamicForkTasksInputParamName")
    tasks, given = inputs.get(name), inputs.get(inputs_name or "") or {}
    if not isinstance(tasks, list) or not all(map(_is_named, tasks)):
        raise RunCannotContinue(_invalid_task_list(name, tasks, definition))
    if not isinstance(given, dict):
        raise RunCannotContinue(
            "Input to the dynamically forked tasks is not a map -> expecting a map of K,V  "
            f"but found {_excerpt(str(inputs_name), given, definition)}"
        )
    typed = []
    for index, task in enumerate(tasks):
        document, errors = coerce_step(task)
        if errors:
            raise RunCannotContinue(f"{_invalid_task_list(name, tasks, definition)}: [{index}].{errors[0].message}")
        typed.append(document)
    return [_add_input(task, given.get(task.get("taskReferenceName"))) for task in typed]


def _is_named(task: JsonValue) -> bool:
    return isinstance(task, dict) and bool(task.get("taskReferenceName"))


def _invalid_task_list(name: str, tasks: JsonValue, definition: Definition) -> str:
    """Return Conductor's message for an input that is not a list of tasks."""
    excerpt = _excerpt(name, tasks, definition)
    return f"Input '{name}' is invalid. Cannot deserialize a list of Workflow Tasks from '{excerpt}'"


def _excerpt(name: str, value: JsonValue, definition: Definition) -> str:
    """Return an input as JSON, truncated, without values that the definition masks."""
    redacted = redact_for_listeners({name: value}, definition)[name]
    text = redacted if isinstance(redacted, str) else json.dumps(redacted, default=str)
    return text if len(text) <= MAX_EXCERPT_LENGTH else f"{text[:MAX_EXCERPT_LENGTH]}…"


def _add_input(task: dict[str, Any], given: JsonValue) -> dict[str, Any]:
    if not isinstance(given, dict):
        return task
    return {**task, "inputParameters": {**(task.get("inputParameters") or {}), **given}}


def _from_legacy_parameter(step: Step, inputs: dict[str, Any], definition: Definition) -> list[dict[str, Any]]:
    """Return the tasks of the deprecated `dynamicForkJoinTasksParam`.

    Its form is `{dynamicTasks: [{taskName, referenceName, type, input}]}`.
    """
    name = str(step.document.get("dynamicForkJoinTasksParam") or "forkTaskInputs")
    given = inputs.get(name)
    tasks = given.get("dynamicTasks") if isinstance(given, dict) else None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise RunCannotContinue(
            f"Dynamic tasks could not be created. The value of {name} from task's input "
            f"{_excerpt(name, given, definition)} has no dynamic tasks to be scheduled"
        )
    return [
        {
            "name": task.get("taskName"),
            "taskReferenceName": task.get("referenceName"),
            "type": task.get("type") or DEFAULT_TYPE,
            "inputParameters": task.get("input") or {},
        }
        for task in tasks
    ]


def _coerce_task(task: JsonValue, step: Step) -> dict[str, Any]:
    """Return a task with every field as its type."""
    document, errors = coerce_step(task)
    if errors or not isinstance(document, dict):
        problem = f"{errors[0].path}: {errors[0].message}" if errors else "it is not a task"
        raise StepRefused(f"Invalid task in the dynamic fork {step.ref}: {problem}.")
    return document


def _check_branch_document(document: dict[str, Any], step: Step) -> dict[str, Any]:
    """Check the document of a branch and return it with all required fields."""
    document = _coerce_task(document, step)
    if not document.get("taskReferenceName"):
        raise StepRefused(f"A task in the dynamic fork {step.ref} has no taskReferenceName.")
    if not document.get("name"):
        document = {**document, "name": document["taskReferenceName"]}
    for field in ("taskReferenceName", "name", "type"):
        if len(document.get(field) or "") > MAX_NAME_LENGTH:
            raise StepRefused(
                f"The {field} of a task in the dynamic fork {step.ref} must have at most {MAX_NAME_LENGTH} characters."
            )
    return document


def _require_few(step: Step, inputs: dict[str, Any], limit: int) -> None:
    """Check the number of branches before their documents are built, because one decision creates all of them."""
    legacy = inputs.get(str(step.document.get("dynamicForkJoinTasksParam") or "forkTaskInputs"))
    given = (
        inputs.get("forkTaskInputs"),
        inputs.get(step.document.get("dynamicForkTasksParam") or ""),
        legacy.get("dynamicTasks") if isinstance(legacy, dict) else None,
    )
    count = max(len(each) if isinstance(each, list) else 0 for each in given)
    if limit and count > limit:
        raise RunCannotContinue(
            f"The dynamic fork {step.ref} has {count} branches. The maximum is {limit} (MAX_FORKED_TASKS)."
        )


def _require_join(fork: Step, run: Run) -> None:
    """Require that a JOIN follows the fork. The wording of the error is Conductor's."""
    follower = run.definition.steps.get(fork.follower or "")
    # A fork inside a dynamic branch is not part of the definition. The layout of the branch adds its join.
    if (follower is not None and structure_of(follower.type).ends_forks) or fork.ref not in run.definition.steps:
        return
    raise RunCannotContinue(structure_of(fork.type).missing_join)


class ForkJoin(StepType):
    """Leads to the head of every branch and to its join; completes at once (execution §8.5)."""

    type = "FORK_JOIN"
    label = gettext_noop("Fork")
    flow = Flow.FORK
    required_fields = ("forkTasks",)
    forwards_failures = True
    shows_isolation_group = True
    missing_join = "Fork task definition is not followed by a join task.  Check the blueprint"
    is_retried = False
    summary = gettext_noop("Run branches in parallel and join them")
    search_words = gettext_noop("parallel split concurrent branches")
    sample = (step_of(type, "fork", forkTasks=[[], []]), step_of(Join.type, "join", joinOn=[]))

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        _require_join(step, ctx.run)
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        yield completed_task(step, key, ctx.run, now, input=inputs, output={})

    def bodies(self, step: Document) -> Iterator[Body]:
        for number, branch in enumerate(as_steps(step.get("forkTasks"))):
            place = f"forkTasks[{number}]"
            yield Body(place, ("forkTasks", number), place, as_steps(branch))

    def successors(self, task: Task) -> Iterator[Key]:
        # An optional fork that could not be entered is skipped, because no join would wait for its branches.
        heads = () if task.status == COMPLETED_WITH_ERRORS else task.step.heads
        for head in (*heads, task.step.follower):
            if head and task.lets_control_pass:
                yield Key(head, task.key.iteration_path)


FILLED_BY_FORK = ("dynamicForkTasksParam", "dynamicForkTasksInputParamName")


class DynamicForkState(TaskState, total=False):
    """State of a dynamic fork. `forked`: references of the branches. `has_cases`: one of them is a step with cases."""

    forked: list[str]
    has_cases: bool


class ForkJoinDynamic(StepType):
    """Creates one branch for each task in its input, then leads to its join (execution §8.6)."""

    type = "FORK_JOIN_DYNAMIC"
    label = gettext_noop("Dynamic fork")
    flow = Flow.DYNAMIC_FORK
    forwards_failures = True
    shows_isolation_group = True
    result_comes_from_outside = True
    missing_join = "Dynamic join definition is not followed by a join task.  Check the workflow definition."
    is_retried = False
    summary = gettext_noop("Run a branch for each item, decided at runtime")
    search_words = gettext_noop("parallel map")
    sample = (
        step_of(
            type,
            "dynamic_fork",
            inputParameters={"forkTaskName": "my_task", "forkTaskInputs": "${workflow.input.items}"},
        ),
        step_of(Join.type, "dynamic_join", joinOn=[]),
    )
    members = (
        StepMember("dynamicForkTasksParam", gettext_noop("Input with the tasks")),
        StepMember("dynamicForkTasksInputParamName", gettext_noop("Input with their inputs")),
    )

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        _require_join(step, ctx.run)
        inputs = resolve_inputs(step, ctx, key, ctx.run, now, holds_steps=True)
        _require_few(step, inputs, ctx.run.definition.limits.max_forked_tasks)
        written = branch_documents(step, inputs, partial(has_forked, step, ctx), ctx.run.definition)
        documents = _add_policies(written, ctx)
        branch_steps = _build_branch_steps(step, documents)
        refs = [document["taskReferenceName"] for document in documents]
        if used := _references_in_use(branch_steps.keys(), step, key, ctx):
            raise StepRefused(f"The reference '{used[0]}' is already in use. Give each forked task a unique reference.")
        state: DynamicForkState = {"forked": refs}
        if any(is_choice(branch_steps[ref]) for ref in refs):
            state["has_cases"] = True
        fork_input = {name: value for name, value in inputs.items() if name not in _fork_parameters(step)}
        yield completed_task(
            step,
            key,
            ctx.run,
            now,
            output={},
            step_state=state,
            branch_steps=branch_steps,
            input={**fork_input, "forkedTasks": refs, "forkedTaskDefs": documents},
        )

    def check(self, step: Document, template: Document) -> Iterator[str]:
        if "forkTaskInputs" in step["inputParameters"]:
            return
        pair = ("dynamicForkTasksParam", "dynamicForkTasksInputParamName")
        if step.get("dynamicForkJoinTasksParam") is None:
            yield from (name for name in pair if not step.get(name))
        elif any(step.get(name) is not None for name in pair):
            yield (
                "dynamicForkJoinTasksParam or combination of dynamicForkTasksInputParamName and dynamicForkTasksParam "
                f"cannot be used together for taskType: {self.type} taskName: {step.get('name', '')}"
            )

    def inline_definitions(self, step: Document) -> Iterator[tuple[str, Any]]:
        for path, definition in extract_definitions(step.get("inputParameters"))[1].items():
            steps = (f"[{key}]" if type(key) is int else f".{key}" for key in path)
            yield "".join(("inputParameters", *steps)), definition

    def forked_references(self, task: Task) -> tuple[str, ...]:
        return tuple(cast(DynamicForkState, task.step_state).get("forked", ()))

    def successors(self, task: Task) -> Iterator[Key]:
        for ref in (*self.forked_references(task), task.step.follower):
            if ref:
                yield Key(ref, task.key.iteration_path)


def _may_have_forked(step: Step, run: Run) -> bool:
    """Return True if the run may have forked dynamically before: at another step, or here in an earlier iteration."""
    written = [other for other in run.definition.steps.values() if other.type == step.type]
    return len(written) != 1 or bool(step.loops) or written[0].ref != step.ref


def has_forked(step: Step, ctx: DecisionContext) -> bool:
    """Return True if the run has forked dynamically before."""
    run = ctx.run
    if any("forked" in task.step_state for task in run.tasks.values()):
        return True
    if run.is_whole or not _may_have_forked(step, run):
        return False
    # A branch of a dynamic fork may fork again, but the outermost dynamic fork is in the definition.
    refs = frozenset(other.ref for other in run.definition.steps.values() if other.type == step.type)
    return bool(ctx.require(ReferencesInUse(refs)))


def _references_in_use(refs: Collection[str], step: Step, key: Key, ctx: DecisionContext) -> list[str]:
    """Return the references used by steps of the definition, or by tasks in this iteration, in the order given."""
    run = ctx.run
    used = {ref for ref in refs if ref in run.definition.steps or Key(ref, key.iteration_path) in run.tasks}
    if not used and not run.is_whole and _may_have_forked(step, run):
        used = ctx.require(ReferencesInUse(frozenset(refs), key.iteration_path))
    return [ref for ref in refs if ref in used]


def _fork_parameters(step: Step) -> set[str]:
    """Return the inputs that only list the branches; the input of the fork's task omits them."""
    return {str(step.document.get(name)) for name in FILLED_BY_FORK}


def _add_policies(documents: list[dict[str, Any]], ctx: DecisionContext) -> list[dict[str, Any]]:
    """Return the documents with their registered task definitions. Their own ones come from data: no secrets."""
    documents = [limit_runtime_metadata(document, ()) for document in documents]
    names = sorted({document["name"] for document in documents if not document.get("taskDefinition")})
    found = dict(
        zip(names, gather_values(partial(ctx.require, TaskDefinitionByName(name)) for name in names), strict=True)
    )
    return [
        document
        if document.get("taskDefinition") or not found.get(document["name"])
        else {**document, "taskDefinition": found[document["name"]]}
        for document in documents
    ]


def _layout_branch_steps(document: dict[str, Any], fork: Step) -> dict[str, Step]:
    try:
        return layout_steps([document], loops=fork.loops, is_authored=False)
    except ValidationFailed as invalid:
        raise StepRefused("; ".join(each.message for each in invalid.validation_errors)) from invalid
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise StepRefused(f"The forked task '{document['taskReferenceName']}' is invalid: {error}.") from error


def _build_branch_steps(step: Step, documents: list[dict[str, Any]]) -> dict[str, Step]:
    """Return the steps of all branches. The heads are joined by the step after the fork."""
    branch_steps: dict[str, Step] = {}
    for document in documents:
        branch = _layout_branch_steps(document, step)
        if duplicates := branch.keys() & branch_steps.keys():
            raise StepRefused(
                f"The reference '{min(duplicates)}' occurs twice. Give each forked task a unique reference."
            )
        branch_steps |= layout_branch(branch, document["taskReferenceName"], step.follower)
    return branch_steps
