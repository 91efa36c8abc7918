"""Context for linting definitions: other definitions, workers and recent outputs, read for many definitions at once."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.apps import apps

from ..core.definition import PROMPT_TARGET, named_uses, type_of, walk
from ..core.step_types.waiting import WaitForWebhook
from ..core.validation.findings import (
    LintContext,
    PayloadShape,
    merge_shapes,
    value_shape,
    workflow_output_shape,
)
from ..runs.models import Attempt, Run
from ..tasks.models import Poller
from ..utils import process_state
from .models import TaskDefinition, WorkflowDefinition

MAX_EXAMPLE_SIZE = 64_000
SEARCHED_RUNS = 5


@dataclass(frozen=True, slots=True)
class ModelNames:
    """Functions that return the models by integration and the names of prompts, which steps of AI tasks name."""

    integrations: Callable[[], dict[str, frozenset[str]]]
    prompts: Callable[[], frozenset[str]]


_model_names: process_state.Wiring[ModelNames | None] = process_state.wiring(None)


def register_model_names(names: ModelNames) -> None:
    """Register what AI tasks can name. Without it, their names are not checked."""
    _model_names.value = names


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
    models = _model_names.value
    return LintContext(
        tasks=dict(TaskDefinition.objects.values_list("name", "document")[:5_000]),
        workflows=workflows,
        outputs=outputs,
        workflow_outputs=_output_shapes(subs & workflows.keys()),
        worked=frozenset(Poller.objects.order_by().values_list("task_type", flat=True).distinct()),
        received=_received_events() if any(type_of(spot.step) == WaitForWebhook.type for spot in found) else None,
        integrations=models.integrations()
        if models and any(use.target_type != PROMPT_TARGET for use in uses)
        else None,
        prompts=models.prompts() if models and any(use.target_type == PROMPT_TARGET for use in uses) else None,
    )


def _received_events() -> frozenset[str]:
    # The table by name, because its slice imports this one.
    documents = apps.get_model("conductor", "Webhook")._default_manager.values_list("document", flat=True)
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
