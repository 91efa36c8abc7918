"""Branches of a dynamic fork, from the four forms of its input (execution §8.6)."""

import json
from collections.abc import Callable
from typing import Any

from ..definition import Definition, Step
from ..document.checks.normalization import coerce_step
from ..errors import RunCannotContinue, StepRefused
from ..expressions import field_text
from ..masking import redact_for_listeners
from ..snapshot import Run
from ..step_structure import DEFAULT_TYPE, structure_of
from .child_definition import version_of
from .sub_workflow import SubWorkflow

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
    step: Step, inputs: dict[str, Any], element: Any, index: int, kind: str, name: str, ref: str
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


def _is_named(task: Any) -> bool:
    return isinstance(task, dict) and bool(task.get("taskReferenceName"))


def _invalid_task_list(name: str, tasks: Any, definition: Definition) -> str:
    """Return Conductor's message for an input that is not a list of tasks."""
    excerpt = _excerpt(name, tasks, definition)
    return f"Input '{name}' is invalid. Cannot deserialize a list of Workflow Tasks from '{excerpt}'"


def _excerpt(name: str, value: Any, definition: Definition) -> str:
    """Return an input as JSON, truncated, without values that the definition masks."""
    redacted = redact_for_listeners({name: value}, definition)[name]
    text = redacted if isinstance(redacted, str) else json.dumps(redacted, default=str)
    return text if len(text) <= MAX_EXCERPT_LENGTH else f"{text[:MAX_EXCERPT_LENGTH]}…"


def _add_input(task: dict[str, Any], given: Any) -> dict[str, Any]:
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


def _coerce_task(task: Any, step: Step) -> dict[str, Any]:
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


def require_join(fork: Step, run: Run) -> None:
    """Require that a JOIN follows the fork. The wording of the error is Conductor's.

    Raises:
        RunCannotContinue: when no JOIN follows.
    """
    follower = run.definition.steps.get(fork.follower or "")
    # A fork inside a dynamic branch is not part of the definition. The layout of the branch adds its join.
    if (follower is not None and structure_of(follower.type).ends_forks) or fork.ref not in run.definition.steps:
        return
    raise RunCannotContinue(structure_of(fork.type).missing_join)
