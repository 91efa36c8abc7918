"""Validation errors and lint findings of definitions, including the syntax errors of their scripts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..core.definition import type_of
from ..core.errors import ValidationError
from ..core.expressions import ScriptLanguage, evaluator
from ..core.validation.checks import (
    has_too_many_expressions,
    has_too_many_steps,
    read_handler,
    task_errors,
    workflow_errors,
)
from ..core.validation.findings import ERROR, UNREADABLE, LintContext, LintFinding
from ..core.validation.lint import lint_definition, sort_by_severity
from ..core.validation.lint_fields import WrittenScript, lint_task_definition, scripts_of
from ..scripts.syntax import ScriptText, SyntaxFault, syntax_faults
from ..settings import conf
from .models import TaskDefinition, WorkflowDefinition
from .resolved_definitions import names_in
from .schemas import schema_findings

Document = dict[str, Any]
NOT_WELL_FORMED = "Expression is not well formatted: "
"""The beginning of Conductor's message."""
UNRESOLVED = ". `${…}` is not replaced in this field: give the value as an input"
JQ = "jq"


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

    A definition with too many steps or expressions has only its validation error.
    """
    if has_too_many_steps(document) or has_too_many_expressions(document):
        return lint_definition({}, known, validation_errors)
    found = lint_definition(document, known, validation_errors)
    return sort_by_severity([*found, *jq_findings(document), *schema_findings(document)])


def _input_templates(document: Any) -> dict[str, Any]:
    """Return the input templates of the task definitions that the document's steps use."""
    rows = TaskDefinition.objects.filter(name__in=names_in(document)).values_list("name", "document")
    return {name: found.get("inputTemplate") or {} for name, found in rows}


def validate_task(document: Document) -> list[ValidationError]:
    """Return all validation errors of a task definition."""
    found = task_errors(document, owner_email_mandatory=conf.owner_email_mandatory)
    return [*found, *_name_errors(TaskDefinition, document)]


def _name_errors(kind: type[WorkflowDefinition] | type[TaskDefinition], document: Document) -> list[ValidationError]:
    """Return the error for a new definition that clients could not address: they remove such segments from paths."""
    name = document.get("name") if isinstance(document, dict) else None
    if name not in (".", "..") or kind.objects.filter(name=name).exists():
        return []
    return [ValidationError("name", f"The name '{name}' cannot be part of an address. Choose another name.", name)]


def lint_task(document: Document) -> list[LintFinding]:
    """Return the lint findings of a task definition."""
    return sort_by_severity([*lint_task_definition(document), *schema_findings(document)])


def script_errors(document: Any) -> list[ValidationError]:
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


def jq_findings(document: Any) -> list[LintFinding]:
    """Return a finding for each jq program of a workflow definition that cannot be compiled."""
    return [
        LintFinding(ERROR, UNREADABLE, each.path, message)
        for each, message in _faulty_scripts(document)
        if each.language == JQ
    ]


def _faulty_scripts(document: Any) -> Iterator[tuple[WrittenScript, str]]:
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
    """Return the fault with its place in the script as it is written."""
    lines = script.written.count("\n") + 1
    if fault.line > lines:
        return fault._replace(line=lines, column=0)
    return fault._replace(column=max(fault.column - script.offset, 1)) if fault.line == 1 and fault.column else fault
