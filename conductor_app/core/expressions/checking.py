"""Validation of templates without evaluating them."""

from dataclasses import dataclass
from typing import Any

from .json_walk import expression_texts_by_path
from .parsing import parse_template
from .template import needed_references


@dataclass(frozen=True)
class ExpressionError:
    """An expression that will never have a value, where it stands, and why."""

    parameter: str
    expression: str
    problem: str


def check_template(value: Any) -> list[ExpressionError]:
    """Return the expressions with an invalid path. Expressions that are composed at run time are not checked."""
    return [
        ExpressionError(place, expression.source, expression.reference.problem)
        for place, text in expression_texts_by_path(value)
        for expression in parse_template(text)
        if expression.reference and expression.reference.problem
    ]


def expression_roots(value: Any) -> frozenset[str]:
    """Return the names that expressions begin with: `workflow`, references of tasks, bare names."""
    return frozenset(root for root, _ in needed_references(value))
