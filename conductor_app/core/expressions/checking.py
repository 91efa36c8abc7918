"""What can be said of a template before anything runs."""

from dataclasses import dataclass
from typing import Any

from .parsing import parse
from .template import needed
from .walking import named_texts


@dataclass(frozen=True)
class Complaint:
    """An expression that will never have a value, where it stands, and why."""

    parameter: str
    expression: str
    problem: str


def check(value: Any) -> list[Complaint]:
    """The expressions whose path cannot be read; one that is put together at run time is not judged."""
    return [
        Complaint(place, expression.source, expression.reference.problem)
        for place, text in named_texts(value)
        for expression in parse(text)
        if expression.reference and expression.reference.problem
    ]


def roots(value: Any) -> frozenset[str]:
    """The names that the expressions begin with: `workflow`, references of tasks, bare names."""
    return frozenset(root for root, _ in needed(value))
