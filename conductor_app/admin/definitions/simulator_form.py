"""The form of the simulator: an input, and for every step that somebody outside ends, how it ends."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.samples import sample_from_schema
from ...core.simulation.outcomes import (
    FAILS,
    FAILS_FOR_GOOD,
    GIVES,
    INSIDE,
    KINDS_OF_OUTCOMES,
    SIMULATED_TYPES,
    STAYS,
    TIMES_OUT,
    SimulatedOutcome,
    steps_needing_outcome,
)
from ...core.step_structure import Flow, structure_of_step, type_of
from ...insight.inner_workflows import InnerWorkflow
from ..form_parsing import parse_json_value
from ..json_editor import format_json

MAX_REPETITIONS = 50
MAX_STEPS = 300
OUTCOME_LABELS = {
    GIVES: gettext_lazy("completes and gives"),
    FAILS: gettext_lazy("fails, then completes and gives"),
    FAILS_FOR_GOOD: gettext_lazy("fails for good"),
    TIMES_OUT: gettext_lazy("times out"),
    STAYS: gettext_lazy("stays open"),
    SIMULATED_TYPES: gettext_lazy("is played itself"),
}
"""What a step can come to, in words; the last is for sub-workflows alone."""


@dataclass(slots=True)
class StepChoice:
    """One step in the form: how it ends, what it gives, where that comes from, and what is wrong with it."""

    ref: str
    name: str
    type: str
    how: str
    times: int
    output: str
    source: str
    error: str = ""
    is_workflow: bool = False

    @property
    def outcome_choices(self) -> list[tuple[str, Any]]:
        """What it can come to."""
        return [(kind, words) for kind, words in OUTCOME_LABELS.items() if kind != SIMULATED_TYPES or self.is_workflow]

    @property
    def depth(self) -> int:
        """In how many sub-workflows it stands."""
        return self.ref.count(INSIDE)


@dataclass(slots=True)
class SimulationForm:
    """A try that is being put together."""

    document: dict[str, Any]
    input: str
    steps: list[StepChoice]
    inner: Mapping[str, InnerWorkflow] = field(default_factory=dict)
    error: str = ""
    outcomes: dict[str, SimulatedOutcome] = field(default_factory=dict)
    parsed_input: dict[str, Any] = field(default_factory=dict)

    def is_valid(self) -> bool:
        """Whether it can be tried; reads what was typed."""
        try:
            self.parsed_input = parse_object(self.input)
        except ValueError as fault:
            self.error = str(fault)
        for choice in self.steps:
            try:
                self.outcomes[choice.ref] = SimulatedOutcome(choice.how, choice.times, parse_object(choice.output))
            except ValueError as fault:
                choice.error = str(fault)
        return not self.error and not any(choice.error for choice in self.steps)


def parse_object(text: str) -> dict[str, Any]:
    """The JSON object in a text, empty for an empty text; raises ValueError with the place of a fault."""
    if not text.strip():
        return {}
    try:
        value = parse_json_value(text)
    except json.JSONDecodeError as fault:
        facts = {"message": fault.msg, "line": fault.lineno, "column": fault.colno}
        raise ValueError(_("This is not JSON: %(message)s at line %(line)s, column %(column)s.") % facts) from None
    except RecursionError:
        raise ValueError(_("This is nested too deeply.")) from None
    if not isinstance(value, dict):
        raise ValueError(_("This must be a JSON object."))
    return value


def new_simulation_form(
    document: dict[str, Any],
    input: Any,
    recorded: Mapping[str, Any],
    tasks: Mapping[str, Mapping[str, Any]],
    inner: Mapping[str, InnerWorkflow],
) -> SimulationForm:
    """A try as it is offered: every step gives what it gave lately, or else what its definition promises.

    `inner`: the sub-workflows that are known, by the way to their steps.
    """
    return SimulationForm(
        document, format_json(input), list(_step_choices(document, recorded, tasks, inner, ""))[:MAX_STEPS], inner
    )


def _step_choices(
    document: Mapping[str, Any],
    recorded: Mapping[str, Any],
    tasks: Mapping[str, Mapping[str, Any]],
    inner: Mapping[str, InnerWorkflow],
    way: str,
) -> Iterator[StepChoice]:
    for spot in steps_needing_outcome(document):
        ref, output = f"{way}{spot.ref}", _default_choice(spot.ref, tasks.get(spot.name) or {}, recorded)
        if structure_of_step(spot.step).flow is Flow.DYNAMIC_FORK:
            output = {}, _("each of its branches")
        found = inner.get(ref)
        how = SIMULATED_TYPES if found is not None and spot.ref not in recorded else GIVES
        yield StepChoice(
            ref, spot.name, type_of(spot.step), how, 1, format_json(output[0]), output[1], is_workflow=found is not None
        )
        if found is not None:
            yield from _step_choices(found.document, found.recorded, tasks, inner, f"{ref}{INSIDE}")


def _default_choice(ref: str, definition: Mapping[str, Any], recorded: Mapping[str, Any]) -> tuple[Any, str]:
    if ref in recorded:
        return recorded[ref], _("as in its last run")
    schema = definition.get("outputSchema")
    if isinstance(schema, Mapping) and isinstance(sample := sample_from_schema(schema.get("data")), dict):
        return sample, _("from its output schema")
    keys = definition.get("outputKeys")
    if isinstance(keys, list) and keys:
        return {str(key): "" for key in keys}, _("from its output keys")
    return {}, _("nothing known")


def submitted_form(form: SimulationForm, submitted: Mapping[str, str]) -> SimulationForm:
    """The try with what was sent; steps that the form did not know stay as they are offered."""
    form.input = submitted.get("input", form.input)
    for choice in form.steps:
        how = submitted.get(f"how.{choice.ref}", choice.how)
        choice.how = how if how in KINDS_OF_OUTCOMES else GIVES
        times = submitted.get(f"times.{choice.ref}", str(choice.times))
        choice.times = min(int(times), MAX_REPETITIONS) if times.isdecimal() and len(times) < 6 else 1
        output = submitted.get(f"output.{choice.ref}", choice.output).replace("\r\n", "\n")
        if output != choice.output:
            choice.output, choice.source = output, _("as typed")
    return form


def form_from_case(form: SimulationForm, input: Any, outcomes: Mapping[str, Any]) -> SimulationForm:
    """The try as a case has kept it."""
    form.input = format_json(input)
    for choice in form.steps:
        if choice.ref in outcomes:
            kept = SimulatedOutcome(*outcomes[choice.ref])
            choice.how, choice.times, choice.output, choice.source = (
                kept.how,
                kept.times,
                format_json(kept.output or {}),
                _("kept"),
            )
    return form
