"""Expressions: `${…}` templates with their provenance, JSONPath, and the languages that steps may be written in."""

from dataclasses import dataclass
from types import ModuleType

from . import value_param
from .checking import Complaint, check, roots
from .java_text import java_text
from .jsonpath import ABSENT, BadPath, Path, compile_path
from .provenance import Provenance, trace
from .python_text import without_texts, words
from .references import MISSING, Scope
from .sealed import resolve_secrets
from .template import needed, resolve


@dataclass(frozen=True)
class Script:
    """A language that the core does not run itself: it asks for the value, and decides again with the answer."""

    language: str


EVALUATORS: dict[str, ModuleType | Script] = {
    "value-param": value_param,
    "javascript": Script("javascript"),
    "graaljs": Script("javascript"),
    "python": Script("python"),
}


def evaluator(name: str) -> ModuleType | Script | None:
    """The language of that name: a module with `evaluate(expression, inputs)`, a script language, or None."""
    return EVALUATORS.get(name)


__all__ = [
    "ABSENT",
    "EVALUATORS",
    "MISSING",
    "BadPath",
    "Complaint",
    "Path",
    "Provenance",
    "Scope",
    "Script",
    "check",
    "compile_path",
    "evaluator",
    "java_text",
    "needed",
    "resolve",
    "resolve_secrets",
    "roots",
    "trace",
    "without_texts",
    "words",
]
