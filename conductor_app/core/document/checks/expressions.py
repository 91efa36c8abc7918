"""Validation of the expressions in the inputs of a workflow's top-level steps (api §3.3)."""

from typing import Any

from ...expressions import check_template, expression_roots
from ...expressions.json_walk import expression_texts_by_path
from ..inline_definitions import inputs_without_definitions
from .values import DocumentPosition

UNPREFIXED_NAMES = frozenset(("CPEWF_TASK_ID", "NETFLIX_ENV", "NETFLIX_STACK"))


def check_expressions(workflow: dict[str, Any], known: set[str], place: DocumentPosition) -> None:
    """Check that each expression is a path that begins with `workflow`, a reference or a known bare name."""
    for step in workflow["tasks"]:
        for name, value in inputs_without_definitions(step).items():
            for spot, text in expression_texts_by_path(value):
                key = spot.rpartition(".")[2] or name
                for problem in _problems(text, known):
                    place.add_error(
                        f"taskReferenceName: {problem[0]} for given task: {step['name']} input value: {key} "
                        f"of input parameter: {problem[1]} {problem[2]}"
                    )


def _problems(text: str, known: set[str]) -> list[tuple[str, str, str]]:
    unreadable = [
        ("", found.expression, f"is not a valid JSON path: {found.problem}.") for found in check_template(text)
    ]
    unknown = sorted(expression_roots(text) - known - UNPREFIXED_NAMES - {"workflow", ""})
    return unreadable + [(root, text, "is not defined in workflow definition.") for root in unknown]
