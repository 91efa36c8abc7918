"""Syntax errors of the scripts in workflow definitions and event handlers, found when they are saved."""

from collections.abc import Iterator
from typing import Any

from ...core.document.checks import read_handler
from ...core.document.lint import ERROR, UNREADABLE, LintFinding
from ...core.document.script_places import WrittenScript, scripts_of
from ...core.errors import ValidationError
from ...core.expressions import ScriptLanguage, evaluator
from ...core.step_structure import type_of
from ...scripts.syntax import ScriptText, SyntaxFault, syntax_faults

NOT_WELL_FORMED = "Expression is not well formatted: "
"""The beginning of Conductor's message."""
UNRESOLVED = ". `${…}` is not replaced in this field: give the value as an input"
JQ = "jq"


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
