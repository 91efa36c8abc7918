"""The form of the simulator: an input, and a mock result for each step that the engine does not complete itself."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.samples import sample_from_schema
from ...core.simulation.mock_outcomes import (
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
from ...insight.definitions.inner_workflows import InnerWorkflow
from ..form_parsing import parse_json_value
from ..json_editor import format_json

MAX_REPETITIONS = 50
MAX_STEPS = 300
OUTCOME_LABELS = {
    GIVES: gettext_lazy("Completes with"),
    FAILS: gettext_lazy("Fails, then completes with"),
    FAILS_FOR_GOOD: gettext_lazy("Fails (terminal)"),
    TIMES_OUT: gettext_lazy("Times out"),
    STAYS: gettext_lazy("Stays open"),
    SIMULATED_TYPES: gettext_lazy("Simulated"),
}
"""The possible results of a step. The last one applies only to sub-workflows."""


@dataclass(slots=True)
class StepChoice:
    """One step of the form: its mock result, the source of the sample output, and the error of the typed output."""

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
        """Return the possible results of the step."""
        return [(kind, label) for kind, label in OUTCOME_LABELS.items() if kind != SIMULATED_TYPES or self.is_workflow]

    @property
    def depth(self) -> int:
        """Return the number of sub-workflows around the step."""
        return self.ref.count(INSIDE)


@dataclass(slots=True)
class SimulationForm:
    """A simulation that the user is configuring."""

    document: dict[str, Any]
    input: str
    steps: list[StepChoice]
    inner: Mapping[str, InnerWorkflow] = field(default_factory=dict)
    error: str = ""
    outcomes: dict[str, SimulatedOutcome] = field(default_factory=dict)
    parsed_input: dict[str, Any] = field(default_factory=dict)

    def is_valid(self) -> bool:
        """Parse the typed values. Return True if the simulation can run."""
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
    """Parse a JSON object. Empty text is an empty object.

    Raises:
        ValueError: when the text is not a JSON object; the message has the position of the error.
    """
    if not text.strip():
        return {}
    try:
        value = parse_json_value(text)
    except json.JSONDecodeError as fault:
        facts = {"message": fault.msg, "line": fault.lineno, "column": fault.colno}
        raise ValueError(_("Invalid JSON: %(message)s at line %(line)s, column %(column)s.") % facts) from None
    except RecursionError:
        raise ValueError(_("The document is nested too deeply.")) from None
    if not isinstance(value, dict):
        raise ValueError(_("Enter a JSON object."))
    return value


def new_simulation_form(
    document: dict[str, Any],
    input: Any,
    recorded: Mapping[str, Any],
    tasks: Mapping[str, Mapping[str, Any]],
    inner: Mapping[str, InnerWorkflow],
) -> SimulationForm:
    """Return the initial form: every step has its latest output, otherwise a sample from its definition.

    `inner`: the known sub-workflows by the path of their steps.
    """
    return SimulationForm(
        document, format_json(input), list(_step_choices(document, recorded, tasks, inner, ""))[:MAX_STEPS], inner
    )


def _step_choices(
    document: Mapping[str, Any],
    recorded: Mapping[str, Any],
    tasks: Mapping[str, Mapping[str, Any]],
    inner: Mapping[str, InnerWorkflow],
    prefix: str,
) -> Iterator[StepChoice]:
    for spot in steps_needing_outcome(document):
        ref, output = f"{prefix}{spot.ref}", _default_choice(spot.ref, tasks.get(spot.name) or {}, recorded)
        if structure_of_step(spot.step).flow is Flow.DYNAMIC_FORK:
            output = {}, _("for each branch")
        found = inner.get(ref)
        how = SIMULATED_TYPES if found is not None and spot.ref not in recorded else GIVES
        yield StepChoice(
            ref, spot.name, type_of(spot.step), how, 1, format_json(output[0]), output[1], is_workflow=found is not None
        )
        if found is not None:
            yield from _step_choices(found.document, found.recorded, tasks, inner, f"{ref}{INSIDE}")


def _default_choice(ref: str, definition: Mapping[str, Any], recorded: Mapping[str, Any]) -> tuple[Any, str]:
    if ref in recorded:
        return recorded[ref], _("From last run")
    schema = definition.get("outputSchema")
    if isinstance(schema, Mapping) and isinstance(sample := sample_from_schema(schema.get("data")), dict):
        return sample, _("From output schema")
    keys = definition.get("outputKeys")
    if isinstance(keys, list) and keys:
        return {str(key): "" for key in keys}, _("From output keys")
    return {}, _("No sample")


def submitted_form(form: SimulationForm, submitted: Mapping[str, str]) -> SimulationForm:
    """Return the form with the submitted values. Unknown steps keep their initial values."""
    form.input = submitted.get("input", form.input)
    for choice in form.steps:
        how = submitted.get(f"how.{choice.ref}", choice.how)
        choice.how = how if how in KINDS_OF_OUTCOMES else GIVES
        times = submitted.get(f"times.{choice.ref}", str(choice.times))
        choice.times = min(int(times), MAX_REPETITIONS) if times.isdecimal() and len(times) < 6 else 1
        output = submitted.get(f"output.{choice.ref}", choice.output).replace("\r\n", "\n")
        if output != choice.output:
            choice.output, choice.source = output, _("Edited")
    return form


def form_from_case(form: SimulationForm, input: Any, outcomes: Mapping[str, Any]) -> SimulationForm:
    """Return the form with the values of a test case."""
    form.input = format_json(input)
    for choice in form.steps:
        if choice.ref in outcomes:
            saved = SimulatedOutcome(*outcomes[choice.ref])
            choice.how, choice.times, choice.output, choice.source = (
                saved.how,
                saved.times,
                format_json(saved.output or {}),
                _("From test case"),
            )
    return form
