"""Taskcluster's scopes, and the scope expressions that methods require (taskcluster §6.5).

An expression is a scope, `{"AllOf": […]}` or `{"AnyOf": […]}`. In a template, `<name>` stands for a parameter, `{"for":
name, "in": list, "each": …}` for one expression per item, and `{"if": name, "then": …}` for an optional expression.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .permission_set import NamePatterns, name_patterns

Expression = str | Mapping[str, Any]
ALL_SCOPES = "*"
PLACEHOLDER_PATTERN = re.compile(r"<([^>]*)>")
SCOPE_PATTERN = re.compile(r"[\x20-\x7e]*\Z")
NO_SCOPES_REQUIRED: Expression = {"AllOf": []}


def scope_set(scopes: Iterable[str]) -> NamePatterns:
    """Return the patterns of the scopes: a scope with a trailing `*` satisfies all scopes with its prefix."""
    return name_patterns(scopes)


def is_satisfied(expression: Expression, granted: NamePatterns) -> bool:
    """Return True if the scopes satisfy the expression. An empty AllOf is satisfied, an empty AnyOf is not."""
    if isinstance(expression, str):
        return expression in granted
    if "AllOf" in expression:
        return all(is_satisfied(part, granted) for part in expression["AllOf"])
    return any(is_satisfied(part, granted) for part in expression["AnyOf"])


def missing_scopes(expression: Expression, granted: NamePatterns) -> Expression | None:
    """Return the unsatisfied part of an expression, or None if it is satisfied."""
    if isinstance(expression, str):
        return None if expression in granted else expression
    operator = "AllOf" if "AllOf" in expression else "AnyOf"
    parts = [missing_scopes(part, granted) for part in expression[operator]]
    remaining = [part for part in parts if part is not None]
    is_enough = not remaining if operator == "AllOf" else len(remaining) < len(parts)
    if is_enough:
        return None
    return remaining[0] if len(remaining) == 1 else {operator: remaining}


def render_expression(template: Expression | None, facts: Mapping[str, Any]) -> Expression:
    """Return the expression of a template with its parameters filled in.

    Raises:
        KeyError: when a parameter is unknown.
    """
    rendered = [] if template is None else list(_render(template, facts))
    return rendered[0] if rendered else NO_SCOPES_REQUIRED


def _render(template: Expression, facts: Mapping[str, Any]) -> Iterator[Expression]:
    if isinstance(template, str):
        yield PLACEHOLDER_PATTERN.sub(lambda place: str(facts[place[1]]), template)
    elif "for" in template:
        for item in facts[template["in"]]:
            yield from _render(template["each"], {**facts, template["for"]: item})
    elif "if" in template:
        if facts[template["if"]]:
            yield from _render(template["then"], facts)
    else:
        for operator, parts in template.items():
            yield {operator: [each for part in parts for each in _render(part, facts)]}


def format_expression(expression: Expression, indent: str = "") -> str:
    """Return the expression as indented lines."""
    if isinstance(expression, str):
        return f"{indent}{expression}"
    operator, parts = next(iter(expression.items()))
    label = {"AllOf": "all of", "AnyOf": "any of"}[operator]
    return "\n".join([f"{indent}{label}:", *(format_expression(part, f"{indent}  ") for part in parts)])


def drop_covered(scopes: Iterable[str]) -> list[str]:
    """Return the scopes, sorted, without those that another one satisfies."""
    remaining: list[str] = []
    prefixes: list[str] = []
    # Sorted by length, with stars first: a later scope cannot satisfy an earlier one.
    for scope in sorted(set(scopes), key=lambda scope: (not scope.endswith("*"), len(scope))):
        if not scope.startswith(tuple(prefixes)):
            remaining.append(scope)
            if scope.endswith("*"):
                prefixes.append(scope[:-1])
    return sorted(remaining)
