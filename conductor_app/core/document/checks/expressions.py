"""Validation of the expressions in the inputs of a workflow's top-level steps (api §3.3)."""

from typing import Any

from ...expressions import check_template, expression_roots
from ...expressions.json_walk import expression_texts_by_path
from ..inline_definitions import inputs_without_definitions
from .values import DocumentPosition

MAX_ERRORS = 1_000
"""The maximum number of errors of a definition. The expressions after the last one are not checked."""
MAX_TEXT_LENGTH = 1_000
"""The maximum length of a text within an error."""
UNPREFIXED_NAMES = frozenset(("CPEWF_TASK_ID", "NETFLIX_ENV", "NETFLIX_STACK"))


def check_expressions(workflow: dict[str, Any], known: set[str], place: DocumentPosition) -> None:
    """Check that each expression is a path that begins with `workflow`, a reference or a known bare name."""
    for step in workflow["tasks"]:
        for name, value in inputs_without_definitions(step).items():
            for spot, text in expression_texts_by_path(value):
                key = spot.rpartition(".")[2] or name
                if len(place.validation_errors) >= MAX_ERRORS:
                    return
                for problem in _problems(text, known):
                    place.add_error(
                        f"taskReferenceName: {problem[0]} for given task: {step['name']} input value: {key} "
                        f"of input parameter: {problem[1]} {problem[2]}"
                    )


def _problems(text: str, known: set[str]) -> list[tuple[str, str, str]]:
    unreadable = [
        ("", shorten(found.expression), f"is not a valid JSON path: {found.problem}.")
        for found in check_template(text)[:MAX_ERRORS]
    ]
    unknown = sorted(expression_roots(text) - known - UNPREFIXED_NAMES - {"workflow", ""})[:MAX_ERRORS]
    return unreadable + [(root, shorten(text), "is not defined in workflow definition.") for root in unknown]


def shorten(text: str) -> str:
    """Return the beginning of a long text, for a message."""
    return text if len(text) <= MAX_TEXT_LENGTH else f"{text[:MAX_TEXT_LENGTH]}…"
