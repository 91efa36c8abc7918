"""Lint of scripts that no evaluator executes as they are meant: unknown evaluators, missing scripts, literal `${…}`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...expressions import EVALUATORS
from ...step_structure import structure_of_step, type_of
from ...step_tree import StepSpot
from ...step_types.decision import DecisionStep
from ...step_types.do_while import DoWhile
from ...step_types.json_jq_transform import JsonJqTransform
from ..script_places import is_template
from .findings import UNREADABLE, WARNING, LintFinding, closest_name, did_you_mean

TEMPLATE_LITERAL = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL)
EXPRESSION = re.compile(r"\$\{[^}]*\}?")


def lint_evaluator(spot: StepSpot) -> Iterator[LintFinding]:
    """Yield findings on the evaluator of a step's script, on a missing script, and on expressions in it."""
    step, structure = spot.step, structure_of_step(spot.step)
    field = "inputParameters.queryExpression" if type_of(step) == JsonJqTransform.type else structure.script_field
    if not field:
        return
    given = step.get("inputParameters")
    inputs = given if isinstance(given, Mapping) else {}
    holder, path = (inputs if is_template(field) else step), f"{spot.path}.{field}"
    script = holder.get(field.rpartition(".")[2])
    if structure.allows_python:
        yield from _lint_language(type_of(step), holder.get("evaluatorType"), script, path)
    if not isinstance(script, str) or not script.strip():
        yield from _lint_missing(step, script, path)
    elif not is_template(field) and holder.get("evaluatorType") != "value-param":
        yield from _lint_expressions(script, path)


def _lint_language(type: str, name: Any, script: Any, path: str) -> Iterator[LintFinding]:
    place = f"{path.rpartition('.')[0]}.evaluatorType"
    if not isinstance(name, str) or not name or "${" in name:
        return
    if type == DoWhile.type and name == "value-param" and isinstance(script, str) and script.strip():
        message = "Loops ignore `value-param`, as in Conductor: the condition is evaluated as JavaScript."
        yield LintFinding(WARNING, UNREADABLE, place, message, name)
    elif name not in EVALUATORS and type != DoWhile.type:
        near = closest_name(name, EVALUATORS)
        hint = did_you_mean(near) or f" Use {', '.join(f'`{each}`' for each in EVALUATORS)}."
        message = f"There is no evaluator `{name}`: a run fails at this step.{hint}"
        yield LintFinding(WARNING, UNREADABLE, place, message, name, near)


def _lint_missing(step: Mapping[str, Any], script: Any, path: str) -> Iterator[LintFinding]:
    """A script that is required is missing. Loops over a list need none, and a DECISION can name an input."""
    name = path.rpartition(".")[2]
    if type_of(step) in (DoWhile.type, DecisionStep.type) or (script is None and step.get(name)):
        return
    if script is None or isinstance(script, str):
        message = f"`{name}` is empty: a run fails at this step. Write the script there."
    else:
        message = f"`{name}` must be text."
    yield LintFinding(WARNING, UNREADABLE, path, message)


def _lint_expressions(script: str, path: str) -> Iterator[LintFinding]:
    """Yield a finding on `${…}` in a script that is no input. In template literals of JavaScript it has a meaning."""
    if found := EXPRESSION.search(TEMPLATE_LITERAL.sub("", script)):
        message = f"`{found[0]}` is not replaced here and stays as text. Give the value as an input, and read `$.name`."
        yield LintFinding(WARNING, UNREADABLE, path, message, found[0])
