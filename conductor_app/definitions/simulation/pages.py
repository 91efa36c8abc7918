"""The simulator: an input, mock results for the steps that the engine does not complete itself, and test cases."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.visibility import may, visible
from ...core.definition import Flow, structure_of_step, type_of, walk
from ...core.errors import RequestRefused, ValidationFailed
from ...core.human_tasks import answer_schema
from ...core.primitives import JsonValue
from ...core.schemas import sample_from_schema
from ...core.simulation import (
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
from ...core.step_types.waiting import Human
from ...core.validation.findings import ERROR, REFUSED, LintFinding
from ...human_tasks.form_templates import template_of
from ...runs.models import Run
from ...runs.queries.recent import recent_starts, start_to_repeat
from ...web.documents import render_tree
from ...web.forms import DocumentForm, parse_json_value
from ...web.pages import require_permission, require_permission_on_any
from .. import commands as definition_commands
from ..diagram.canvas import Diagram
from ..diagram.marks import NO_MARKS
from ..diagram.pages import draw_definition
from ..editor.checks import place_findings
from ..editor.pages import DefinitionAdmin
from ..models import DefinitionDraft, SaveRequirement, SimulationCase, TaskDefinition, WorkflowDefinition
from ..policies import type_label
from ..schemas import fill_in_schemas, input_schema
from .commands import case_outcome, simulate_with_children
from .queries import (
    InnerWorkflow,
    SimulationReport,
    inner_workflows,
    members_read,
    newest_outputs,
    recorded_outputs,
    simulation_report,
)

MAX_REPETITIONS = 50
MAX_STEPS = 300
EXAMPLE_OUTPUT = {"result": "example"}
OUTCOME_LABELS = {
    GIVES: gettext_lazy("Completes with"),
    FAILS: gettext_lazy("Fails, then completes with"),
    FAILS_FOR_GOOD: gettext_lazy("Fails, without retries"),
    TIMES_OUT: gettext_lazy("Times out"),
    STAYS: gettext_lazy("Stays open"),
    SIMULATED_TYPES: gettext_lazy("Simulated"),
}
"""The possible results of a step. The last one applies only to sub-workflows."""
PERMISSIONS = ("conductor.change_workflowdefinition", "conductor.execute_workflowdefinition")


@dataclass(slots=True)
class StepChoice:
    """One step of the form: its mock result, the output with its source, and whether it is a sub-workflow."""

    ref: str
    name: str
    type: str
    how: str
    times: int
    output: DocumentForm
    source: str
    is_workflow: bool = False

    @property
    def outcome_choices(self) -> list[tuple[str, Any]]:
        """Return the possible results of the step."""
        return [(kind, label) for kind, label in OUTCOME_LABELS.items() if kind != SIMULATED_TYPES or self.is_workflow]

    @property
    def type_label(self) -> str:
        return type_label(self.type)

    @property
    def depth(self) -> int:
        """Return the number of sub-workflows around the step."""
        return self.ref.count(INSIDE)


@dataclass(slots=True)
class SimulationForm:
    """A simulation that the user is configuring. `starts`: the newest runs, whose inputs the user can take."""

    document: dict[str, Any]
    input: DocumentForm
    steps: list[StepChoice]
    inner: Mapping[str, InnerWorkflow] = field(default_factory=dict)
    outcomes: dict[str, SimulatedOutcome] = field(default_factory=dict)
    starts: list[Run] = field(default_factory=list)

    @property
    def has_switched(self) -> bool:
        """Return True if the submitted form only asks to edit a value in another way."""
        return any(form.has_switched for form in (self.input, *(choice.output for choice in self.steps)))

    def is_valid(self) -> bool:
        """Parse the typed values. Return True if the simulation can run."""
        is_valid = self.input.is_valid()
        for choice in self.steps:
            is_valid = choice.output.is_valid() and is_valid
            self.outcomes[choice.ref] = SimulatedOutcome(choice.how, choice.times, dict(choice.output.document))
        return is_valid


class SimulatorPages(DefinitionAdmin):
    """Page that simulates a definition."""

    def simulator_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<int:pk>/test/", view(self.simulate), name="simulator"),
            path("test/", view(self.simulate_new), name="simulator_new"),
        ]

    def redirect_to_test(self, row: WorkflowDefinition | None, *, has_draft: bool = True) -> HttpResponse:
        if row is None:
            return HttpResponseRedirect(reverse("admin:simulator_new"))
        query = {"draft": ""} if has_draft else None
        return HttpResponseRedirect(reverse("admin:simulator", args=[row.pk], query=query))

    def simulate_new(self, request: HttpRequest) -> HttpResponse:
        """Show the form and the result for the user's draft of a new definition. Test cases need a saved one."""
        require_permission_on_any(request, self.add_permission)
        document = _load_draft(request, "")
        if document is None:
            messages.error(request, _("You have no draft with valid JSON."))
            return HttpResponseRedirect(reverse("admin:conductor_workflowdefinition_add"))
        row = WorkflowDefinition(name=str(document.get("name") or ""), version=1, document=document)
        trial = self._build_form(request, row, document)
        execution, fault = self._simulate(trial) if request.method == "POST" else (None, "")
        return self._render_page(
            request, row, trial, execution, _("This tests your draft, which is not saved yet."), fault
        )

    def simulate(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show the form, and the result of the submitted simulation.

        Raises:
            PermissionDenied: when the user may neither start runs nor edit definitions.
        """
        if not any(may(request.user, permission) for permission in PERMISSIONS):
            raise PermissionDenied(PERMISSIONS[0])
        row = self.find_row(request, pk)
        if not any(may(request.user, permission, row) for permission in PERMISSIONS):
            raise PermissionDenied(PERMISSIONS[0])
        document, note = _select_document(request, row)
        trial = self._build_form(request, row, document)
        if request.method != "POST":
            return self._render_page(request, row, trial, None, note)
        if "delete_case" in request.POST:
            return self._delete_case(request, row)
        if request.POST.get("step") == "rule":
            return self._set_save_requirement(request, row)
        execution, fault = self._simulate(trial)
        if execution is not None and request.POST.get("step") == "keep":
            return self._save_case(request, row, trial, execution)
        return self._render_page(request, row, trial, execution, note, fault)

    def _build_form(self, request: HttpRequest, row: WorkflowDefinition, document: dict[str, Any]) -> SimulationForm:
        inner = inner_workflows(document)
        documents = [document, *(each.document for each in inner.values())]
        names = {str(spot.step.get("name")) for each in documents for spot in walk(each.get("tasks"))}
        tasks = dict(visible(TaskDefinition.objects.filter(name__in=names)).values_list("name", "document"))
        # Another definition may have the name of a new one: its runs are not those of the draft.
        starts = recent_starts(row.name) if row.pk else []
        suggested = _suggest_input(
            row, document, (request.GET.get("like") if row.pk else "") or next((run.pk for run in starts), "")
        )
        recorded = recorded_outputs(row.name) if row.pk else {}
        trial = new_simulation_form(document, suggested, recorded, tasks, inner, newest_outputs(documents))
        trial.starts = starts
        if request.method == "POST":
            return submitted_form(trial, request.POST)
        case = SimulationCase.objects.filter(workflow=row.name, name=request.GET.get("case", "")).first()
        return form_from_case(trial, case.input, case.outcomes) if case else trial

    def _simulate(self, trial: SimulationForm) -> tuple[Any, str]:
        """Return the execution with its sub-workflows, or the reason why the simulation failed."""
        if trial.has_switched or not trial.is_valid():
            return None, ""
        try:
            return simulate_with_children(trial.document, dict(trial.input.document), trial.outcomes), ""
        except ValidationFailed as failed:
            found = [LintFinding(ERROR, REFUSED, each.path, each.message) for each in failed.validation_errors[:5]]
            placed = place_findings(found, "{}", trial.document)
            return None, "; ".join(f"{each.owner}: {each.finding.message.replace('`', '')}" for each in placed)
        except RequestRefused as refused:
            return None, refused.message

    def _save_case(
        self, request: HttpRequest, row: WorkflowDefinition, trial: SimulationForm, execution: Any
    ) -> HttpResponse:
        name, by = request.POST.get("case_name", ""), request.user.get_username()
        outcomes = {ref: list(outcome) for ref, outcome in trial.outcomes.items()}
        case = {
            "input": trial.input.document,
            "outcomes": outcomes,
            "expected": case_outcome(execution[0]),
        }
        try:
            definition_commands.save_case(row.name, name, case, by)
        except RequestRefused as refused:
            return self._render_page(request, row, trial, execution, "", refused.message)
        messages.success(request, _case_saved_message(name, row))
        return HttpResponseRedirect(reverse("admin:simulator", args=[row.pk], query={"case": name.strip()}))

    def _delete_case(self, request: HttpRequest, row: WorkflowDefinition) -> HttpResponse:
        try:
            definition_commands.delete_case(row.name, request.POST["delete_case"], request.user.get_username())
        except RequestRefused as refused:
            messages.error(request, refused.message)
        return HttpResponseRedirect(reverse("admin:simulator", args=[row.pk]))

    def _set_save_requirement(self, request: HttpRequest, row: WorkflowDefinition) -> HttpResponse:
        """Set whether saving the definition requires that all test cases pass."""
        require_permission(request, self.change_permission, row)
        holds = request.POST.get("cases_hold") == "block"
        definition_commands.set_save_requirement(row.name, holds, request.user.get_username())
        message = _("Saving now requires that all test cases pass.") if holds else _("Test cases only warn.")
        messages.success(request, message)
        return HttpResponseRedirect(reverse("admin:simulator", args=[row.pk]))

    def _render_page(
        self,
        request: HttpRequest,
        row: WorkflowDefinition,
        trial: SimulationForm,
        execution: Any,
        note: str,
        fault: str = "",
    ) -> HttpResponse:
        until = request.POST.get("until", "")
        simulation, children = execution or (None, {})
        moment = int(until) if until.isdecimal() and len(until) < 6 else None
        report = simulation_report(simulation, trial.document, moment, children)
        context = {
            "row": row,
            "trial": trial,
            "cases_hold": SaveRequirement.objects.filter(workflow=row.name, holds=True).exists(),
            "picture": draw_definition(trial.document, report.step_marks if report else NO_MARKS),
            "inner_pictures": _inner_pictures(trial, report),
            "report": report,
            "trees": {"output": render_tree(report.output)} if report else {},
            "fault": fault,
            "note": note,
            "cases": SimulationCase.objects.filter(workflow=row.name).order_by("name") if row.pk else [],
            "case": request.GET.get("case", ""),
            "last": trial.starts,
            "query": request.META.get("QUERY_STRING", ""),
        }
        return self.render_page(request, "simulator", _("Test %(name)s") % {"name": row.name}, **context)


def new_simulation_form(
    document: dict[str, Any],
    input: JsonValue,
    recorded: Mapping[str, Any],
    tasks: Mapping[str, Mapping[str, Any]],
    inner: Mapping[str, InnerWorkflow],
    elsewhere: Mapping[str, Any],
) -> SimulationForm:
    """Return the initial form: every step has its latest output, otherwise a sample from its definition.

    `inner`: the known sub-workflows by the path of their steps. `elsewhere`: outputs of tasks in any workflow, by name.
    """
    given = input if isinstance(input, Mapping) else {}
    form = DocumentForm("input", _("Input as JSON"), input_schema(document), None, given=given)
    return SimulationForm(
        document, form, list(islice(_step_choices(document, recorded, tasks, inner, elsewhere), MAX_STEPS)), inner
    )


def _step_choices(
    document: Mapping[str, Any],
    recorded: Mapping[str, Any],
    tasks: Mapping[str, Mapping[str, Any]],
    inner: Mapping[str, InnerWorkflow],
    elsewhere: Mapping[str, Any],
    prefix: str = "",
) -> Iterator[StepChoice]:
    read = members_read(document)
    for spot in steps_needing_outcome(document):
        ref, kind, definition = f"{prefix}{spot.ref}", type_of(spot.step), tasks.get(spot.name) or {}
        schema, source = _output_schema(spot.step, definition)
        given = sample_from_schema(schema)
        if structure_of_step(spot.step).flow is Flow.DYNAMIC_FORK:
            schema, given, source = None, {}, _("for each branch")
        elif spot.ref in recorded:
            given, source = recorded[spot.ref], _("From last run")
        elif schema is None and (sample := structure_of_step(spot.step).output_sample):
            given, source = dict(sample), _("Sample of its type")
        elif schema is None and spot.name in elsewhere:
            given, source = elsewhere[spot.name], _("From last run of this task")
        elif schema is None and read.get(spot.ref):
            schema, source = _schema_of(read[spot.ref], 4), _("Read by other steps")
        elif schema is None:
            given, source = EXAMPLE_OUTPUT, _("An example: no step reads it")
        found = inner.get(ref)
        how = SIMULATED_TYPES if found is not None and spot.ref not in recorded else GIVES
        output = DocumentForm(
            f"output.{ref}",
            _("Output of %(ref)s") % {"ref": ref},
            schema or _schema_of(given),
            None,
            given=given if isinstance(given, dict) else {},
            mode_name=f"answer.{ref}",
        )
        yield StepChoice(ref, spot.name, kind, how, 1, output, source, is_workflow=found is not None)
        if found is not None:
            yield from _step_choices(found.document, found.recorded, tasks, inner, elsewhere, f"{ref}{INSIDE}")


def _output_schema(step: Mapping[str, Any], definition: Mapping[str, Any]) -> tuple[JsonValue, str]:
    """Return the schema of a step's output and where it is from: its form, or the definition of its task."""
    inputs = step.get("inputParameters")
    if type_of(step) == Human.type and isinstance(inputs, Mapping):
        template = template_of(inputs)
        schema = template.document["jsonSchema"] if template else answer_schema(inputs)
        return schema, _("From its form")
    found = fill_in_schemas(dict(definition)).get("outputSchema")
    if isinstance(found, Mapping) and isinstance(sample_from_schema(found.get("data")), dict):
        return found["data"], _("From output schema")
    keys = definition.get("outputKeys")
    if isinstance(keys, list) and keys:
        return {"properties": {str(key): {"default": ""} for key in keys}}, _("From output keys")
    return None, ""


def _schema_of(value: Any, levels: int = 2) -> dict[str, Any]:
    """Return a schema with a field for each member of a value, down to some levels; without fields if it has none."""
    if not isinstance(value, Mapping) or not value or not levels:
        return {}
    return {"type": "object", "properties": {str(name): _schema_of(each, levels - 1) for name, each in value.items()}}


def submitted_form(form: SimulationForm, submitted: Mapping[str, str]) -> SimulationForm:
    """Return the form with the submitted values. Unknown steps keep their initial values."""
    if form.input.is_in(submitted):
        form.input.bind(submitted)
    for choice in form.steps:
        how = submitted.get(f"how.{choice.ref}", choice.how)
        choice.how = how if how in KINDS_OF_OUTCOMES and (how != SIMULATED_TYPES or choice.is_workflow) else GIVES
        times = submitted.get(f"times.{choice.ref}", str(choice.times))
        choice.times = min(int(times), MAX_REPETITIONS) if times.isdecimal() and len(times) < 6 else 1
        if choice.output.is_in(submitted):
            before = choice.output.document
            choice.output.bind(submitted)
            if not choice.output.is_valid() or choice.output.document != before:
                choice.source = _("Edited")
    return form


def form_from_case(form: SimulationForm, input: Any, outcomes: Mapping[str, Any]) -> SimulationForm:
    form.input.show(input)
    for choice in form.steps:
        if choice.ref in outcomes:
            saved = SimulatedOutcome(*outcomes[choice.ref])
            choice.how, choice.times, choice.source = saved.how, saved.times, _("From test case")
            choice.output.show(saved.output if isinstance(saved.output, Mapping) else {})
    return form


def _inner_pictures(trial: SimulationForm, report: SimulationReport | None) -> list[tuple[str, str, Diagram]]:
    """Return the simulated sub-workflows in the order of their steps: path, name and diagram."""
    if report is None:
        return []
    return [
        (prefix, str(inner.document.get("name") or prefix), draw_definition(inner.document, report.inner[prefix]))
        for prefix, inner in trial.inner.items()
        if prefix in report.inner
    ]


def _select_document(request: HttpRequest, row: WorkflowDefinition) -> tuple[dict[str, Any], str]:
    """Return the saved definition, or the user's draft (`?draft`), with a note for the page."""
    if "draft" not in request.GET:
        return row.document, ""
    document = _load_draft(request, row.name)
    if document is None:
        return row.document, _("You have no draft with valid JSON. This is the saved version.")
    return document, _("This tests your draft, which is not saved yet.")


def _load_draft(request: HttpRequest, name: str) -> dict[str, Any] | None:
    """Return the user's draft of a definition, of a new one if `name` is empty; None if it is no JSON object."""
    draft = DefinitionDraft.objects.filter(kind="workflow", name=name, author=request.user.get_username()).first()
    try:
        document = parse_json_value(draft.text) if draft else None
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _case_saved_message(name: str, row: WorkflowDefinition) -> str:
    message = _("Test case %(case)s saved. It runs on every save of %(name)s.")
    return message % {"case": name.strip(), "name": row.name}


def _suggest_input(row: WorkflowDefinition, document: dict[str, Any], run_id: str) -> Any:
    """Return the input of a run, otherwise a sample from the schema or the declared inputs."""
    found = start_to_repeat(row.name, run_id) if run_id else None
    if found is not None and found.has_input:
        return found.input
    return sample_from_schema(input_schema(document))
