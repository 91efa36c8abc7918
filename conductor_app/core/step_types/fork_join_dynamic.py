"""FORK_JOIN_DYNAMIC: starts the branches that its input lists."""

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any, cast

from ..data_requests import ReferencesInUse, TaskDefinitionByName
from ..decision_context import DecisionContext, gather_values
from ..definition import Key, Step
from ..document.inline_definitions import extract_definitions
from ..document.layout import layout_branch, layout_steps
from ..effects import Effect
from ..errors import StepRefused, ValidationFailed
from ..snapshot import Run, Task
from ..step_state import TaskState
from ..step_structure import Document, Flow
from .base import StepType, completed_task, resolve_inputs
from .cases import is_choice
from .dynamic_branches import branch_documents, require_join

FILLED_BY_FORK = ("dynamicForkTasksParam", "dynamicForkTasksInputParamName")


class DynamicForkState(TaskState, total=False):
    """State of a dynamic fork. `forked`: references of the branches. `has_cases`: one of them is a step with cases."""

    forked: list[str]
    has_cases: bool


class ForkJoinDynamic(StepType):
    """Creates one branch for each task in its input, then leads to its join (execution §8.6)."""

    type = "FORK_JOIN_DYNAMIC"
    flow = Flow.DYNAMIC_FORK
    forwards_failures = True
    shows_isolation_group = True
    result_comes_from_outside = True
    missing_join = "Dynamic join definition is not followed by a join task.  Check the workflow definition."
    is_retried = False

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        require_join(step, ctx.run)
        inputs = resolve_inputs(step, ctx, key, ctx.run, now, holds_steps=True)
        written = branch_documents(step, inputs, partial(has_forked, step, ctx), ctx.run.definition)
        documents = add_policies(written, ctx)
        branch_steps = build_branch_steps(step, documents)
        refs = [document["taskReferenceName"] for document in documents]
        if used := references_in_use(branch_steps.keys(), step, key, ctx):
            raise StepRefused(f"The reference '{used[0]}' is already in use. Give each forked task a unique reference.")
        state: DynamicForkState = {"forked": refs}
        if any(is_choice(branch_steps[ref]) for ref in refs):
            state["has_cases"] = True
        fork_input = {name: value for name, value in inputs.items() if name not in fork_parameters(step)}
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


def may_have_forked(step: Step, run: Run) -> bool:
    """Return True if the run may have forked dynamically before: at another step, or here in an earlier iteration."""
    written = [other for other in run.definition.steps.values() if other.type == step.type]
    return len(written) != 1 or bool(step.loops) or written[0].ref != step.ref


def has_forked(step: Step, ctx: DecisionContext) -> bool:
    """Return True if the run has forked dynamically before."""
    run = ctx.run
    if any("forked" in task.step_state for task in run.tasks.values()):
        return True
    if run.is_whole or not may_have_forked(step, run):
        return False
    # A branch of a dynamic fork may fork again, but the outermost dynamic fork is in the definition.
    refs = frozenset(other.ref for other in run.definition.steps.values() if other.type == step.type)
    return bool(ctx.require(ReferencesInUse(refs)))


def references_in_use(refs: Collection[str], step: Step, key: Key, ctx: DecisionContext) -> list[str]:
    """Return the references used by steps of the definition, or by tasks in this iteration, in the order given."""
    run = ctx.run
    used = {ref for ref in refs if ref in run.definition.steps or Key(ref, key.iteration_path) in run.tasks}
    if not used and not run.is_whole and may_have_forked(step, run):
        used = ctx.require(ReferencesInUse(frozenset(refs), key.iteration_path))
    return [ref for ref in refs if ref in used]


def fork_parameters(step: Step) -> set[str]:
    """Return the inputs that only list the branches; the input of the fork's task omits them."""
    return {str(step.document.get(name)) for name in FILLED_BY_FORK}


def add_policies(documents: list[dict[str, Any]], ctx: DecisionContext) -> list[dict[str, Any]]:
    """Return the documents with their registered task definitions."""
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


def layout_branch_steps(document: dict[str, Any], fork: Step) -> dict[str, Step]:
    """Return the steps of one branch.

    Raises:
        StepRefused: when the document of the branch is invalid; it was not validated before.
    """
    try:
        return layout_steps([document], loops=fork.loops, is_authored=False)
    except ValidationFailed as invalid:
        raise StepRefused("; ".join(each.message for each in invalid.validation_errors)) from invalid
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise StepRefused(f"The forked task '{document['taskReferenceName']}' is invalid: {error}.") from error


def build_branch_steps(step: Step, documents: list[dict[str, Any]]) -> dict[str, Step]:
    """Return the steps of all branches. The heads are joined by the step after the fork.

    Raises:
        StepRefused: when a document is invalid, or a reference occurs twice.
    """
    branch_steps: dict[str, Step] = {}
    for document in documents:
        branch = layout_branch_steps(document, step)
        if duplicates := branch.keys() & branch_steps.keys():
            raise StepRefused(
                f"The reference '{min(duplicates)}' occurs twice. Give each forked task a unique reference."
            )
        branch_steps |= layout_branch(branch, document["taskReferenceName"], step.follower)
    return branch_steps
