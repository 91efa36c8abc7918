"""The canvas of the workflow editor: forms and buttons that edit the text of the draft. Nothing is saved.

A button is named `canvas`; its value is an action and its argument, such as `wrap:loop`. A script sends the form to
`CanvasPages.canvas_view` and applies the returned text. Without a script the editor's page handles the same form.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.visibility import visible
from ...core.definition import type_of, walk
from ...core.errors import Invalid, RequestRefused
from ...core.human_tasks import answer_fields
from ...core.step_edits import (
    WRAPPERS,
    StepEdit,
    StepPlace,
    delete_step,
    find_step,
    insert_steps,
    move_step,
    places_of,
    wrap_step,
)
from ...core.step_types.base import STATIC_OPTIONS
from ...core.step_types.decisions import Switch
from ...core.step_types.waiting import Human
from ...core.validation.lint_fields import BEFORE, compare_order
from ...human_tasks.pages.form_templates import KINDS
from ...web.forms import format_json
from ...web.pages import render_to_string
from ..models import TaskDefinition
from ..policies import place_label, policy_context, type_label
from .checks import CheckResult, check_text, checks_report, findings_of_step, parse_text
from .pages import DefinitionAdmin
from .step_catalog import catalog
from .step_form import SettingsForm, StepForm
from .step_rows import USER_TYPE_LABELS

MAX_OPTIONS = 200
MAX_VALUE_DEPTH = 250
"""Nesting depth of values, more than that of the deepest steps: 60 levels of four objects and lists."""
MENUS = {"show": "step_path", "pick": "place_path", "move": "move_path"}
"""The menu that has the argument of an action, if the button has none."""
WRAPPER_LABELS = {"fork": gettext_lazy("fork"), "loop": gettext_lazy("loop"), "try": gettext_lazy("try")}


KEYS = (
    ("↑ ↓", gettext_lazy("to the previous or the next step of the diagram")),
    (gettext_lazy("Enter"), gettext_lazy("edits the step, or adds one at a +")),
    ("+", gettext_lazy("adds a step after this one")),
    ("F2", gettext_lazy("renames the step")),
    ("Alt+↑ Alt+↓", gettext_lazy("moves the step")),
    (gettext_lazy("Delete"), gettext_lazy("deletes the step")),
    (gettext_lazy("Esc"), gettext_lazy("from the form back to the diagram")),
    ("Ctrl+Z Ctrl+Y", gettext_lazy("undoes and redoes")),
)
"""The keys of the canvas, and what each does."""


@dataclass(slots=True)
class CanvasState:
    """The document on the canvas, and what the panel beside it shows.

    `text`: the document as the editor shows it. `at`: path of the selected step, or "". `place`: where a step is being
    added, or "". `form`: a submitted form with errors. `message`, `is_refused`: the result of the action.
    """

    document: dict[str, Any]
    text: str
    at: str = ""
    place: str = ""
    form: Any = None
    message: str = ""
    is_refused: bool = False


def handle_canvas(text: str, submitted: Mapping[str, str]) -> CanvasState:
    """Apply the submitted action to a text. Return the state after it.

    Raises:
        Invalid: when the text is not a JSON object, or is nested too deeply.
    """
    document = parse_text(text).document
    if document is None:
        raise Invalid(_("The text is not valid JSON. Correct it in the JSON view."))
    if is_too_deep(document):
        raise Invalid(_("The document is nested too deeply for the canvas. Edit it as JSON."))
    state = CanvasState(document, text, submitted.get("at", ""), submitted.get("place", ""))
    act, sign, argument = submitted.get("canvas", "").partition(":")
    argument = argument if sign else submitted.get(MENUS.get(act, ""), "")
    try:
        if act != "delete" and "panel" in submitted:
            _apply_form(state, submitted)
        if state.form is None:
            ACTIONS.get(act, _keep)(state, argument)
    except RequestRefused as refused:
        state.message, state.is_refused = refused.message, True
    if state.document != document:
        state.text = format_json(state.document)
    return state


def is_too_deep(document: dict[str, Any]) -> bool:
    """Return True if the values of a document are nested too deeply for the forms."""
    pending: list[tuple[Any, int]] = [(document, 0)]
    while pending:
        value, depth = pending.pop()
        if depth > MAX_VALUE_DEPTH:
            return True
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        pending.extend((each, depth + 1) for each in inner)
    return False


def _apply_form(state: CanvasState, submitted: Mapping[str, str]) -> None:
    """Apply the form of the panel. A form with errors stays in the state."""
    form: Any = (
        StepForm(state.document, state.at, submitted)
        if submitted["panel"] == "step"
        else SettingsForm(state.document, submitted, is_named=bool(submitted.get("is_named")))
    )
    edit = form.apply(registered_policy(form))
    if edit is None:
        state.form, state.message, state.is_refused = form, _("The form has errors. See its fields."), True
    else:
        state.document = edit.document


def registered_policy(form: Any) -> Mapping[str, Any]:
    """Return the task definition that applies to a step without a policy of its own."""
    name = form.holder.get("name") if isinstance(form, StepForm) and form.has_policy else None
    row = visible(TaskDefinition.objects.filter(name=name)).first() if isinstance(name, str) else None
    return row.document if row else {}


def _keep(state: CanvasState, argument: str) -> None:
    """Only the form is applied."""


def _show(state: CanvasState, argument: str) -> None:
    if argument:
        find_step(state.document, argument)
    state.at, state.place = argument, ""


def _pick(state: CanvasState, argument: str) -> None:
    state.at, state.place = "", argument


def _add(state: CanvasState, argument: str) -> None:
    if (entry := catalog().get(argument)) is None:
        raise Invalid(_("Unknown step type: %(type)s.") % {"type": argument[:40]})
    steps = entry.sample()
    if argument == Switch.type and (answer := _answer_before(state)):
        steps[0]["inputParameters"] = dict.fromkeys(steps[0]["inputParameters"], answer)
    _accept(state, insert_steps(state.document, state.place, steps))
    state.message = _("%(type)s added.") % {"type": entry.label}


def _answer_before(state: CanvasState) -> str:
    """Return the expression of the first answer of the human task before the place, or an empty text."""
    path, _sign, index = state.place.rstrip("]").rpartition("[")
    if not index.isdecimal() or int(index) == 0:
        return ""
    sequence, before = find_step(state.document, f"{path}[{int(index) - 1}]")
    step = sequence.steps[before]
    fields = answer_fields(step) if type_of(step) == Human.type else []
    return f"${{{step.get('taskReferenceName')}.output.{fields[0]}}}" if fields else ""


def _delete(state: CanvasState, argument: str) -> None:
    ref = _selected_references(state)
    edit = delete_step(state.document, state.at)
    _accept(state, edit)
    removed = len(edit.removed)
    message = _("%(ref)s deleted.") % {"ref": ref}
    if removed:
        message += " " + ngettext(
            "%(count)s value that read its output was removed: %(paths)s.",
            "%(count)s values that read its output were removed: %(paths)s.",
            removed,
        ) % {"count": removed, "paths": ", ".join(edit.removed[:5])}
    state.message = message


def _wrap(state: CanvasState, argument: str) -> None:
    _accept(state, wrap_step(state.document, state.at, argument))


def _move(state: CanvasState, argument: str) -> None:
    if argument in ("up", "down"):
        argument = _neighbor_place(state, argument)
    _accept(state, move_step(state.document, state.at, argument))


ACTIONS: dict[str, Callable[[CanvasState, str], None]] = {
    "show": _show,
    "pick": _pick,
    "add": _add,
    "delete": _delete,
    "wrap": _wrap,
    "move": _move,
}


def _neighbor_place(state: CanvasState, way: str) -> str:
    """Return the place before the previous step, or after the next one."""
    sequence, index = find_step(state.document, state.at)
    begin, end = sequence.unit(index)
    if (way == "up" and not begin) or (way == "down" and end >= len(sequence.steps)):
        raise Invalid(_("There is no step in this direction. Use “Move to” to leave the branch."))
    place = sequence.unit(begin - 1)[0] if way == "up" else sequence.unit(end)[1]
    return f"{sequence.path}[{place}]"


def _accept(state: CanvasState, edit: StepEdit) -> None:
    state.document, state.at, state.place = edit.document, edit.path, ""


def _selected_references(state: CanvasState) -> str:
    """Return the reference of the selected step; those of both if it is a fork or its join."""
    sequence, index = find_step(state.document, state.at)
    begin, end = sequence.unit(index)
    refs = [str(step.get("taskReferenceName") or "") for step in sequence.steps[begin:end]]
    return ", ".join(filter(None, refs)) or _("The step")


def panel_context(state: CanvasState, result: CheckResult, submitted: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the panel: the list of step types, the form of a step, or that of the workflow."""
    context = {
        "canvas_keys": KEYS,
        "state": state,
        "options": _options(state, result),
        "is_named": submitted.get("is_named", ""),
    }
    if state.place:
        return {
            **context,
            "panel": "types",
            "catalog": catalog().values(),
            "place_label": _label_of(state.document, state.place),
        }
    form = state.form or _build_form(state, bool(context["is_named"]))
    if not isinstance(form, StepForm):
        return {**context, "panel": "settings", "panel_form": form, **_lists(state.document)}
    registered = registered_policy(form)
    return {
        **context,
        "panel": "step",
        "panel_form": form,
        "findings": findings_of_step(result, form.path),
        "policy_fields": form.policy_fields(registered),
        "kinds": KINDS.items(),
        "user_types": USER_TYPE_LABELS.items(),
        "wrappers": [(kind, WRAPPER_LABELS[kind]) for kind in WRAPPERS],
        **_lists(state.document),
        **policy_context(form.own_policy or registered or {"retryCount": form.step.get("retryCount")}),
    }


def _build_form(state: CanvasState, is_named: bool) -> Any:
    if state.at:
        try:
            return StepForm(state.document, state.at)
        except RequestRefused:
            state.at = ""
    return SettingsForm(state.document, is_named=is_named)


def _lists(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the steps and the places of a document, for the menus of the panel."""
    spots = islice(walk(document.get("tasks")), MAX_OPTIONS)
    return {
        "steps": [(spot.path, spot.ref or spot.path, type_label(type_of(spot.step))) for spot in spots],
        "places": list(_unique_labels(list(islice(places_of(document), MAX_OPTIONS)))),
    }


def _unique_labels(places: list[StepPlace]) -> Iterator[tuple[str, str]]:
    """Yield paths and labels of places. Labels that are the same have the path behind them."""
    labels = [place_label(place) for place in places]
    counts = Counter(labels)
    for place, label in zip(places, labels, strict=True):
        yield place.path, label if counts[label] == 1 else f"{label} ({place.path})"


def _label_of(document: Mapping[str, Any], path: str) -> str:
    place = next((each for each in places_of(document) if each.path == path), None)
    return place_label(place) if place else path


def _options(state: CanvasState, result: CheckResult) -> dict[str, list[str]]:
    """Return the suggestions for the fields of the panel."""
    known = result.known or {}
    return {
        "references": _references(state, known),
        "tasks": list(known.get("tasks", ()))[:MAX_OPTIONS],
        "workflows": list(known.get("workflows", ()))[:MAX_OPTIONS],
        **{name: list(values) for name, values in STATIC_OPTIONS.items()},
    }


def _references(state: CanvasState, known: Mapping[str, Any]) -> list[str]:
    """Return expressions that the selected step can use: inputs, variables and outputs of the steps before it."""
    spots = list(walk(state.document.get("tasks")))
    reader = next((spot for spot in spots if spot.path == state.at), None)
    run = known.get("workflow", {})
    found = ["${workflow.input}"]
    found += [f"${{workflow.{part}.{name}}}" for part in ("input", "variables") for name in run.get(part, {})]
    for spot in spots:
        if spot.ref and (reader is None or compare_order(spot, reader) == BEFORE):
            found.append(f"${{{spot.ref}.output}}")
            found += [f"${{{spot.ref}.output.{path}}}" for path in _paths(known.get("outputs", {}).get(spot.ref, {}))]
    return found[:MAX_OPTIONS]


def _paths(tree: Mapping[str, Any], depth: int = 0) -> list[str]:
    return [
        path
        for name, inner in tree.items()
        for path in (name, *(f"{name}.{rest}" for rest in (_paths(inner, depth + 1) if depth < 2 else ())))
    ]


class CanvasPages(DefinitionAdmin):
    """Endpoint and panel of the canvas."""

    def canvas_urls(self) -> list[URLPattern]:
        return [path("canvas/", self.admin_site.admin_view(self.canvas_view), name="workflowdefinition_canvas")]

    def canvas_view(self, request: HttpRequest) -> HttpResponse:
        """Apply an action to the submitted text. Return the new text, the diagram and the panel."""
        self._require_edit_permission(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        text = request.POST.get("document", "")
        try:
            state = handle_canvas(text, request.POST)
        except Invalid as refused:
            return JsonResponse({"message": refused.message}, status=422)
        result = check_text(self.kind, state.text)
        panel = render_to_string("ops/definitions/step_panel.html", panel_context(state, result, request.POST), request)
        return JsonResponse(
            {
                **checks_report(result, self.kind),
                **({} if state.text == text else {"document": state.text}),
                "panel": panel,
                "at": state.at,
                "message": state.message,
                "is_refused": state.is_refused,
            }
        )

    def render_canvas(self, request: HttpRequest, row: Any, editing_start: Any) -> HttpResponse:
        """Apply an action without a script, and show the editor with the new text, which is saved as the draft."""
        data = request.POST.copy()
        try:
            state = handle_canvas(data.get("document", ""), data)
        except Invalid as refused:
            form, message = self.get_edit_form(row, data, editing_start), refused.message
            return self._render_editor(request, form, row, editing_start, canvas_message=message, is_refused=True)
        data["document"] = state.text
        request.POST = cast(Any, data)
        self._keep_draft(request, row)
        form = self.get_edit_form(row, data, editing_start)
        form.checked = check_text(self.kind, state.text)
        panel = panel_context(state, form.checked, data)
        messages = {"canvas_message": state.message, "is_refused": state.is_refused}
        return self._render_editor(request, form, row, editing_start, **panel, **messages)

    def get_panel(self, request: HttpRequest, row: Any, result: CheckResult) -> dict[str, Any]:
        """Return the form of the step in the address (`?task=`), which its box links to, or that of the workflow."""
        if result.document is None or is_too_deep(result.document) or "canvas" in request.POST:
            return {}
        task = request.GET.get("task")
        at = next((spot.path for spot in walk(result.document.get("tasks")) if task and spot.ref == task), "")
        return panel_context(CanvasState(result.document, "", at), result, {"is_named": "yes" if row else ""})
