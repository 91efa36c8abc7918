"""Expressions: `${…}` templates with their provenance, JSONPath, and the expression languages of steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .javascript import NeedsQuickJS, evaluate_in_process
from .json_text import field_text, java_text, quote_value, script_names, without_texts
from .jsonpath import compile_path
from .jsonpath_segments import ABSENT, BadPath, Path
from .templates import (
    MISSING,
    ExpressionError,
    Provenance,
    Scope,
    check_template,
    expression_roots,
    needed_references,
    parse_template,
    resolve_at_start,
    resolve_secrets,
    resolve_template,
    secret_ranges_of_text,
    trace_expressions,
)


@dataclass(frozen=True)
class ScriptLanguage:
    """Language whose scripts helper processes execute.

    The core requests the result and decides again when it is loaded. Simple expressions in JavaScript are an exception:
    `evaluate_in_process` evaluates them.
    """

    language: str


class ValueParam:
    """The language `value-param`: the expression is the name of an input."""

    def evaluate(self, expression: str, inputs: Mapping[str, Any]) -> Any:
        """Return the input of that name, or None."""
        return inputs.get(expression)


EVALUATORS: dict[str, ValueParam | ScriptLanguage] = {
    "value-param": ValueParam(),
    "javascript": ScriptLanguage("javascript"),
    "graaljs": ScriptLanguage("javascript"),
    "python": ScriptLanguage("python"),
}


def evaluator(name: str) -> ValueParam | ScriptLanguage | None:
    return EVALUATORS.get(name)


__all__ = [
    "ABSENT",
    "EVALUATORS",
    "MISSING",
    "BadPath",
    "ExpressionError",
    "NeedsQuickJS",
    "Path",
    "Provenance",
    "Scope",
    "ScriptLanguage",
    "check_template",
    "compile_path",
    "evaluate_in_process",
    "evaluator",
    "expression_roots",
    "field_text",
    "java_text",
    "needed_references",
    "parse_template",
    "quote_value",
    "resolve_at_start",
    "resolve_secrets",
    "resolve_template",
    "script_names",
    "secret_ranges_of_text",
    "trace_expressions",
    "without_texts",
]  # fmt: skip
