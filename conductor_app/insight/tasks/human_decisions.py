"""The decision of a human task: a field with two values on which the way of the run depends, shown as two buttons."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.expressions.parsing import Expression, parse_template
from ...core.schema_form import CHOICE, YES_NO, build_form
from ...core.step_structure import Flow, structure_of_step
from ...core.step_tree import walk

BOOLEANS = {"true": True, "false": False}
APPROVES = re.compile(r"approv|accept|confirm|allow|agree|grant|\bok\b", re.IGNORECASE)
REJECTS = re.compile(r"reject|den(y|ied)|refus|declin|\bno\b|\bnot\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HumanDecision:
    """The deciding field and its two values. `is_approval`: the first value approves and the second one rejects."""

    field: str
    label: str
    values: tuple[Any, Any]
    is_approval: bool


def human_decision(document: Mapping[str, Any], ref: str, schema: Mapping[str, Any]) -> HumanDecision | None:
    """Return the decision of the HUMAN task `ref` of a workflow, if one field of its output decides.

    That is the field that a SWITCH reads, otherwise the only field of the form. `schema`: that of the output, or empty.
    """
    cases_by_field = dict(_cases_by_field(document, ref))
    fields = {each.key: each for each in build_form(schema)}
    if len(cases_by_field) == 1:
        name, cases = next(iter(cases_by_field.items()))
    elif len(fields) == 1 and not cases_by_field:
        name, cases = next(iter(fields)), []
    else:
        return None
    if fields:
        values = _two_values(fields[name].kind, fields[name].choices) if name in fields else None
    else:
        values = _values_of_cases(cases)
    if values is None:
        return None
    label = fields[name].label if name in fields else name
    return HumanDecision(name, label, values, _is_approval(name, label, values))


def guessed_schema(decision: HumanDecision, expected: list[str]) -> dict[str, Any]:
    """Return the schema of an answer that has none: the decision, and the other members that later steps read."""
    part: dict[str, Any] = {"type": "boolean"} if decision.values == (True, False) else {"enum": [*decision.values]}
    return {"type": "object", "properties": {decision.field: part, **{n: {} for n in expected if n != decision.field}}}


def _cases_by_field(document: Mapping[str, Any], ref: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the members of the output that select cases, with the names of the cases."""
    for spot in walk(document.get("tasks")):
        step = spot.step
        if structure_of_step(step).flow is Flow.CHOICE and (name := _selecting_member(step, ref)):
            cases = step.get("decisionCases")
            yield name, [str(case) for case in cases] if isinstance(cases, Mapping) else []


def _selecting_member(step: Mapping[str, Any], ref: str) -> str:
    """Return the member of the task's output that selects the case of a step, or ""."""
    language = step.get("evaluatorType") or "value-param"
    script = step.get("expression") if language == "value-param" else step.get("caseValueParam")
    given = step.get("inputParameters")
    inputs = given if isinstance(given, Mapping) else {}
    if isinstance(script, str) and script in inputs:
        return _read_member(inputs[script], ref)
    # A script selects the case: it can only depend on the members that the inputs read.
    read = {name for value in inputs.values() if (name := _read_member(value, ref))}
    return next(iter(read)) if len(read) == 1 else ""


def _read_member(value: Any, ref: str) -> str:
    """Return NAME if the value is the expression `${ref.output.NAME}`."""
    parts = parse_template(value).parts if isinstance(value, str) and "${" in value else ()
    if len(parts) != 1 or not isinstance(parts[0], Expression):
        return ""
    found = re.fullmatch(rf"\$\{{{re.escape(ref)}\.output\.([\w-]+)\}}", parts[0].source)
    return found[1] if found else ""


def _two_values(kind: str, choices: tuple[Any, ...]) -> tuple[Any, Any] | None:
    if kind == YES_NO:
        return True, False
    if kind == CHOICE and len(choices) == 2:
        first, second = choices
        return (second, first) if REJECTS.search(str(first)) and not REJECTS.search(str(second)) else (first, second)
    return None


def _values_of_cases(cases: list[str]) -> tuple[Any, Any] | None:
    if cases and set(cases) <= BOOLEANS.keys():
        return True, False
    return _two_values(CHOICE, tuple(cases))


def _is_approval(name: str, label: str, values: tuple[Any, Any]) -> bool:
    if values == (True, False):
        text = f"{name} {label}".replace("_", " ")
        return bool(APPROVES.search(text)) and not REJECTS.search(text)
    yes, no = map(str, values)
    return bool(APPROVES.search(yes)) and bool(REJECTS.search(no))
