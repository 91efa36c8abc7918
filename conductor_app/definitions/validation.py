"""Validation errors and lint findings of definitions, and the context in which they are linted."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.apps import apps

from ..access.authentication import current_actor
from ..access.permissions import EXECUTE, INTEGRATION_PROVIDER, PROMPT, READ, TASK_DEF, WORKFLOW_DEF
from ..access.visibility import usable, visible
from ..core.definition import PROMPT_TARGET, named_uses, type_of, walk
from ..core.errors import ValidationError
from ..core.expressions import ScriptLanguage, evaluator
from ..core.primitives import JsonValue
from ..core.step_types.waiting import WaitForWebhook
from ..core.validation.checks import (
    has_too_many_expressions,
    has_too_many_steps,
    read_handler,
    task_errors,
    workflow_errors,
)
from ..core.validation.findings import (
    ERROR,
    UNREADABLE,
    LintContext,
    LintFinding,
    PayloadShape,
    merge_shapes,
    value_shape,
    workflow_output_shape,
)
from ..core.validation.lint import lint_definition, sort_by_severity
from ..core.validation.lint_fields import WrittenScript, lint_task_definition, scripts_of
from ..runs.models import Attempt, Run
from ..scripts.pool import ScriptText, SyntaxFault, syntax_faults
from ..settings import conf
from ..tasks.models import Poller
from ..utils import process_state
from .models import TaskDefinition, WorkflowDefinition
from .resolved_definitions import names_in
from .schemas import schema_findings

Document = dict[str, Any]
NOT_WELL_FORMED = "Expression is not well formatted: "
"""The beginning of Conductor's message."""
UNRESOLVED = ". `${…}` is not replaced in this field: give the value as an input"
JQ = "jq"
TARGET_TYPES = {
    "task definition": TASK_DEF,
    "workflow": WORKFLOW_DEF,
    "integration": INTEGRATION_PROVIDER,
    "prompt": PROMPT,
}
"""The kinds of objects that steps name, in the words of findings, with their types in grants."""
MAX_EXAMPLE_SIZE = 64_000
SEARCHED_RUNS = 5
MAX_TASKS = 5_000


def validate_workflow(
    document: Document, prefix: str = "", further_templates: Mapping[str, Any] | None = None
) -> list[ValidationError]:
    """Return all validation errors of a workflow definition. Their paths begin with `prefix`.

    `further_templates`: the input templates of task definitions that are not saved yet.
    """
    found = workflow_errors(
        document,
        owner_email_mandatory=conf.owner_email_mandatory,
        input_templates={**_input_templates(document), **(further_templates or {})},
    )
    if not has_too_many_steps(document):
        found += script_errors(document)
    found += _name_errors(WorkflowDefinition, document)
    return [ValidationError(f"{prefix}{each.path}", each.message, each.value) for each in found]


def lint_workflow(
    document: Document, known: LintContext | None = None, validation_errors: Iterable[ValidationError] = ()
) -> list[LintFinding]:
    """Return the lint findings and validation errors of a workflow definition, most severe first.

    A definition with too many steps or expressions has only its validation error. `known`: by default what the
    configuration says, which needs no query.
    """
    known = known or LintContext(clusters=_configured_clusters())
    if has_too_many_steps(document) or has_too_many_expressions(document):
        return lint_definition({}, known, validation_errors)
    found = lint_definition(document, known, validation_errors)
    return sort_by_severity([*found, *jq_findings(document), *schema_findings(document)])


def _input_templates(document: JsonValue) -> dict[str, Any]:
    """Return the input templates of the task definitions that the document's steps use."""
    rows = TaskDefinition.objects.filter(name__in=names_in(document)).values_list("name", "document")
    return {name: found.get("inputTemplate") or {} for name, found in rows}


def validate_task(document: Document) -> list[ValidationError]:
    found = task_errors(document, owner_email_mandatory=conf.owner_email_mandatory)
    return [*found, *_name_errors(TaskDefinition, document)]


def _name_errors(kind: type[WorkflowDefinition] | type[TaskDefinition], document: Document) -> list[ValidationError]:
    """Return the error for a new definition that clients could not address: they remove such segments from paths."""
    name = document.get("name") if isinstance(document, dict) else None
    if name not in (".", "..") or kind.objects.filter(name=name).exists():
        return []
    return [ValidationError("name", f"The name '{name}' cannot be part of an address. Choose another name.", name)]


def lint_task(document: Document) -> list[LintFinding]:
    return sort_by_severity([*lint_task_definition(document), *schema_findings(document)])


def script_errors(document: JsonValue) -> list[ValidationError]:
    """Return an error for each script of a workflow definition that cannot be parsed, and so could never run.

    Faulty jq programs are only findings: Conductor accepts definitions with them, and its jq is another one.
    """
    return [
        ValidationError(
            each.path, f"{message}, taskType: {type_of(each.step)} taskName {each.step.get('name', '')}", each.written
        )
        for each, message in _faulty_scripts(document)
        if each.language != JQ
    ]


def jq_findings(document: JsonValue) -> list[LintFinding]:
    """Return a finding for each jq program of a workflow definition that cannot be compiled."""
    return [
        LintFinding(ERROR, UNREADABLE, each.path, message)
        for each, message in _faulty_scripts(document)
        if each.language == JQ
    ]


def _faulty_scripts(document: JsonValue) -> Iterator[tuple[WrittenScript, str]]:
    scripts = list(scripts_of(document))
    faults = syntax_faults(ScriptText(each.language, each.source) for each in scripts)
    for each in scripts:
        fault = faults.get(ScriptText(each.language, each.source))
        if fault is not None:
            hint = UNRESOLVED if "${" in each.written else ""
            yield each, f"{NOT_WELL_FORMED}{_place_in(each, fault)}{hint}"


def check_handler(document: dict[str, Any]) -> tuple[dict[str, Any], list[ValidationError]]:
    """Return an event handler with converted fields, and all validation errors, that of its condition included."""
    read, validation_errors = read_handler(document)
    condition = read.get("condition")
    language = evaluator(str(read.get("evaluatorType") or "javascript")) or ScriptLanguage("javascript")
    if isinstance(condition, str) and condition.strip() and isinstance(language, ScriptLanguage):
        script = ScriptText(language.language, condition)
        if (fault := syntax_faults([script]).get(script)) is not None:
            message = f"{NOT_WELL_FORMED}{fault}. The condition could never be evaluated"
            validation_errors = [*validation_errors, ValidationError("condition", message, condition)]
    return read, validation_errors


def _place_in(script: WrittenScript, fault: SyntaxFault) -> SyntaxFault:
    lines = script.written.count("\n") + 1
    if fault.line > lines:
        return fault._replace(line=lines, column=0)
    return fault._replace(column=max(fault.column - script.offset, 1)) if fault.line == 1 and fault.column else fault


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

    It has the names that the current actor may use, and the contents that it may read.

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
        tasks=_task_documents(),
        workflows=workflows,
        outputs=outputs,
        workflow_outputs=_output_shapes(subs & workflows.keys()),
        worked=frozenset(Poller.objects.order_by().values_list("task_type", flat=True).distinct()),
        received=_received_events() if any(type_of(spot.step) == WaitForWebhook.type for spot in found) else None,
        integrations=models.integrations()
        if models and any(use.target_type != PROMPT_TARGET for use in uses)
        else None,
        clusters=_configured_clusters(),
        prompts=models.prompts() if models and any(use.target_type == PROMPT_TARGET for use in uses) else None,
        limited=_limited_kinds(),
    )


def _limited_kinds() -> frozenset[str]:
    """Return the kinds of which the current actor may use some objects only."""
    actor = current_actor()
    if actor is None:
        return frozenset()
    may_all = actor.permissions.allows_all
    return frozenset(kind for kind, target in TARGET_TYPES.items() if not may_all((READ, target), (EXECUTE, target)))


def _configured_clusters() -> frozenset[str]:
    """Return the names and the servers of the Kafka clusters that tasks may use."""
    return frozenset((*conf.kafka_clusters, *conf.kafka_clusters.values(), conf.event_queues_kafka_servers))


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


def _task_documents() -> dict[str, dict[str, Any]]:
    """Return the task definitions that the current actor may use; without contents those that it may not read."""
    rows = TaskDefinition.objects.all()
    found = dict(visible(rows).values_list("name", "document")[:MAX_TASKS])
    if (used := usable(rows)) is rows:
        return found
    return {name: {} for name in used.values_list("name", flat=True)[:MAX_TASKS]} | found


def _versions_by_name() -> dict[str, frozenset[int]]:
    versions: dict[str, set[int]] = {}
    for name, version in usable(WorkflowDefinition.objects.order_by("name")).values_list("name", "version"):
        versions.setdefault(name, set()).add(version)
    return {name: frozenset(found) for name, found in versions.items()}


def _output_shapes(names: Iterable[str]) -> dict[str, PayloadShape]:
    """Return the output shapes of the newest versions of these workflows."""
    rows = visible(WorkflowDefinition.objects.filter(name__in=list(names)).order_by("version"))
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
    runs = visible(Run.objects.of_definition(name).order_by("-created_at"))
    return list(runs.values_list("pk", flat=True)[:SEARCHED_RUNS])
