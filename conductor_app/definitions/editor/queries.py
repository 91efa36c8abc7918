"""Completions for the definition editor: fields, step types, tasks, references and known output members.

Context for linting definitions: other definitions, workers and recent outputs, read for many definitions at once.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ...ai.queries.usage import names_and_models, prompt_names
from ...core.decision_context import RUN_FACTS, RUN_PAYLOADS, TASK_FACTS
from ...core.definition import PROMPT_TARGET, StepSpot, named_uses, type_of, walk
from ...core.document.fields import (
    RATE_LIMIT,
    STEP_FIELDS,
    SUB_WORKFLOW,
    TASK_DEFINITION,
    WORKFLOW_DEFINITION,
    FieldTable,
)
from ...core.step_types import STEP_TYPES
from ...core.step_types.waiting import WaitForWebhook
from ...core.validation.checks import ACTIONS, EVENT_HANDLER
from ...core.validation.findings import (
    LintContext,
    PayloadShape,
    merge_shapes,
    step_output_shape,
    value_shape,
    workflow_input_shape,
    workflow_output_shape,
)
from ...events.models import Webhook
from ...runs.models import Attempt, Run
from ...tasks.models import Poller
from ..models import TaskDefinition, WorkflowDefinition

MAX_EXAMPLE_SIZE = 64_000
SEARCHED_RUNS = 5
MAX_WORKFLOWS = 500


def definition_context(documents: Iterable[Mapping[str, Any]], *, with_examples: bool = True) -> LintContext:
    """Return the context for linting these definitions. The number of queries does not grow with their number.

    `with_examples`: include the outputs of recent runs.
    """
    documents = list(documents)
    found = [spot for document in documents for spot in walk(document.get("tasks"))]
    subs = {name for spot in found for name in named_workflows(spot.step)}
    workflows = _versions_by_name()
    outputs = _example_shapes(documents) if with_examples else {}
    uses = {use for spot in found for use in named_uses(type_of(spot.step), spot.step.get("inputParameters"))}
    return LintContext(
        tasks=dict(TaskDefinition.objects.values_list("name", "document")[:5_000]),
        workflows=workflows,
        outputs=outputs,
        workflow_outputs=_output_shapes(subs & workflows.keys()),
        worked=frozenset(Poller.objects.order_by().values_list("task_type", flat=True).distinct()),
        received=_received_events() if any(type_of(spot.step) == WaitForWebhook.type for spot in found) else None,
        integrations=names_and_models() if any(use.target_type != PROMPT_TARGET for use in uses) else None,
        prompts=prompt_names() if any(use.target_type == PROMPT_TARGET for use in uses) else None,
    )


def _received_events() -> frozenset[str]:
    documents = Webhook.objects.values_list("document", flat=True)
    return frozenset(name for each in documents for name in each.get("receiverWorkflowNamesToVersions") or {})


def named_workflows(step: Mapping[str, Any]) -> set[str]:
    """Return the names of the workflows that a step names in its sub-workflow or start parameters."""
    inputs = step.get("inputParameters")
    start = inputs.get("startWorkflow") if isinstance(inputs, Mapping) else None
    params = [param for param in (step.get("subWorkflowParam"), start) if isinstance(param, Mapping)]
    return {name for param in params if isinstance(name := param.get("name"), str)}


def _versions_by_name() -> dict[str, frozenset[int]]:
    versions: dict[str, set[int]] = {}
    for name, version in WorkflowDefinition.objects.order_by("name").values_list("name", "version"):
        versions.setdefault(name, set()).add(version)
    return {name: frozenset(found) for name, found in versions.items()}


def _output_shapes(names: Iterable[str]) -> dict[str, PayloadShape]:
    """Return the output shapes of the newest versions of these workflows."""
    rows = WorkflowDefinition.objects.filter(name__in=list(names)).order_by("version")
    return {row.name: workflow_output_shape(row.document) for row in rows}


def _example_shapes(documents: Iterable[Mapping[str, Any]]) -> dict[str, PayloadShape]:
    """Return the shapes of task outputs in the newest runs, by task name."""
    names = [name for document in documents if isinstance(name := document.get("name"), str)][:1]
    runs = [run for name in names for run in newest_run_ids(name)]
    attempts = (
        Attempt.objects.filter(run__in=runs, status="COMPLETED", output_size__lte=MAX_EXAMPLE_SIZE, output_path="")
        .exclude(output={})
        .order_by("seq")
    )
    shapes: dict[str, PayloadShape] = {}
    for name, output in attempts.values_list("task__name", "output")[:400]:
        shape = value_shape(output, f"the recent outputs of `{name}`")
        shapes[name] = merge_shapes(shapes[name], shape) if name in shapes else shape
    return shapes


def newest_run_ids(name: str) -> list[str]:
    """Return the ids of the newest runs of a definition."""
    runs = Run.objects.of_definition(name).order_by("-created_at")
    return list(runs.values_list("pk", flat=True)[:SEARCHED_RUNS])


MAX_DEPTH = 5
MAX_NAMES = 500
TABLES: dict[str, FieldTable] = {
    "workflow": WORKFLOW_DEFINITION,
    "step": STEP_FIELDS,
    "subWorkflowParam": SUB_WORKFLOW,
    "taskDefinition": TASK_DEFINITION,
    "rateLimitConfig": RATE_LIMIT,
    "eventHandler": EVENT_HANDLER,
}
CHOICES = {
    "evaluatorType": ["value-param", "javascript", "graaljs", "python"],
    "timeoutPolicy": ["TIME_OUT_WF", "ALERT_ONLY", "RETRY"],
    "retryLogic": ["FIXED", "LINEAR_BACKOFF", "EXPONENTIAL_BACKOFF"],
    "joinMode": ["SYNC", "ASYNC"],
    "idempotencyStrategy": ["FAIL", "RETURN_EXISTING", "FAIL_ON_RUNNING"],
    "terminationStatus": ["COMPLETED", "FAILED", "TERMINATED"],
    "method": ["GET", "POST", "PUT", "PATCH", "DELETE"],
    "action": list(ACTIONS),
}


def complete_workflow(document: Mapping[str, Any], known: LintContext) -> dict[str, Any]:
    """Return all completions for a workflow definition."""
    found = {spot.ref: spot for spot in walk(document.get("tasks")) if spot.ref}
    variables = document.get("variables")
    return {
        **_common_choices(known),
        "fields": {name: _field_names(name) for name in TABLES},
        "refs": list(found),
        "types": {ref: _spot_name(spot) for ref, spot in found.items()},
        "outputs": {ref: _name_tree(step_output_shape(spot, known)) for ref, spot in found.items()},
        "workflow": {
            "input": _name_tree(workflow_input_shape(document)),
            "variables": {name: {} for name in (variables if isinstance(variables, Mapping) else ())},
        },
    }


def complete_task() -> dict[str, Any]:
    """Return all completions for a task definition, which refers only to its own fields."""
    return {
        **_common_choices(LintContext()),
        "fields": {"workflow": _field_names("taskDefinition")},
        "refs": [],
        "types": {},
    } | {
        "outputs": {},
        "workflow": {},
    }


def complete_handler() -> dict[str, Any]:
    """Return all completions for an event handler."""
    names = WorkflowDefinition.objects.order_by("name").values_list("name", flat=True).distinct()
    choices = {**CHOICES, "name": list(names[:MAX_NAMES])}
    return {**complete_task(), "fields": {"workflow": _field_names("eventHandler")}, "choices": choices}


def _field_names(table: str) -> list[str]:
    return [field.name for field in TABLES[table]]


def _common_choices(known: LintContext) -> dict[str, Any]:
    return {
        "choices": CHOICES,
        "stepTypes": sorted(STEP_TYPES),
        "tasks": sorted(known.tasks or ()),
        "workflows": sorted(known.workflows or ()),
        "taskParts": ["output", "input", *TASK_FACTS],
        "runParts": [*RUN_PAYLOADS, *RUN_FACTS, "env", "secrets"],
    }


def _spot_name(spot: StepSpot) -> str:
    return type_of(spot.step) if spot.name == spot.ref else f"{type_of(spot.step)} {spot.name}"


def _name_tree(shape: PayloadShape, depth: int = 0) -> dict[str, Any]:
    """Return the known member names of a shape as nested mappings."""
    if shape.members is None or depth > MAX_DEPTH:
        return {}
    return {name: _name_tree(inner, depth + 1) for name, inner in shape.members.items()}
