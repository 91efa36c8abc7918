"""Where the values of a template came from: the answer to "why is this parameter null?"."""

from dataclasses import dataclass
from typing import Any

from .json_walk import expression_texts_by_path
from .jsonpath import ABSENT
from .parsing import Expression, parse_template
from .references import Scope


@dataclass(frozen=True)
class Provenance:
    """The target of one expression in one parameter, and its value.

    `parameter`: the path in the template (`order.lines[0].sku`, empty for the template itself). `found`: separates an
    existing null from a missing value. An expression that is no path has neither root nor key.
    """

    parameter: str
    expression: str
    root: str
    key: str
    path: str
    found: bool
    value: Any


def trace_expressions(value: Any, scope: Scope) -> list[Provenance]:
    """Return one entry for every expression in the template, inner expressions first."""
    return [
        _trace_expression(place, found, scope)
        for place, text in expression_texts_by_path(value)
        for found in parse_template(text)
    ]


def _trace_expression(parameter: str, expression: Expression, scope: Scope) -> Provenance:
    reference = expression.reference_in(scope)
    found = reference.find(scope, expression.source)
    is_found = found is not ABSENT and (reference.path.is_definite or bool(found))
    return Provenance(
        parameter=parameter,
        expression=expression.source,
        root=reference.root,
        key=reference.key,
        path=reference.path.text,
        found=is_found,
        value=reference.path.nothing if found is ABSENT else found,
    )
