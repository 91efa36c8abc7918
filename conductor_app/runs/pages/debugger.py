"""The debugger on a run's page: where the run stands, breakpoints, and the commands on a stopped task."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.permissions import DEBUG, EXECUTE, PERMISSION_BY_RIGHT
from ...core.breakpoints import Breakpoint, steps_ahead
from ...core.definition import Key
from ...core.errors import Invalid, RequestRefused
from ...core.states import TASK
from ...definitions.store import parsed_definition
from ...explanations.debugger import StopDetails, evaluate_expression, live_breakpoints_of, stops_of_run
from ...settings import conf
from ...tasks.pages.actions import PERMISSION
from ...web.badges import relative_time
from ...web.documents import MAX_INLINE_BYTES, payload_label, render_tree
from ...web.forms import parse_json_object, parse_number
from ...web.links import run_address
from ...web.pages import show_refusal
from ..commands import debugging
from ..commands.debugging import BreakpointRequest, ContinueRequest
from ..models import Task
from ..store.rows import parse_iteration_path
from .actions import require_run_permission
from .view_model import RunViewModel

DEBUG_PERMISSION = PERMISSION_BY_RIGHT[EXECUTE, DEBUG]
PLACE_LABELS = {
    "before": gettext_lazy("before the step"),
    "after": gettext_lazy("after its completion"),
    "failure": gettext_lazy("after a failure"),
}
MAX_STEPS = 500


def breakpoints_context(
    found: Iterable[Breakpoint], steps: Iterable[str], address: str, first: str = ""
) -> dict[str, Any]:
    """Return the context of `ops/runs/breakpoints.html`.

    `address`: of its forms; `steps`: to choose from, `first` before the others.
    """
    return {
        "breakpoints": [
            {"found": each, "place": PLACE_LABELS[each.place], "until": relative_time(each.until)} for each in found
        ],
        "first_step": first,
        "breakpoint_minutes": conf.breakpoint_minutes,
        "places": PLACE_LABELS.items(),
        "steps": list(steps)[:MAX_STEPS],
        "debug_address": address,
    }


def parse_breakpoint_form(form: Mapping[str, str]) -> BreakpointRequest:
    """Return the breakpoint of a submitted form."""
    minutes = parse_number(form["minutes"], _("number of minutes")) if form.get("minutes", "").strip() else 0
    return BreakpointRequest(form.get("ref", ""), form.get("place", ""), form.get("condition", ""), minutes)


def debugger_tab(view_model: RunViewModel) -> dict[str, Any]:
    """Return the stops, the breakpoints, the variables, and the value of the expression in the address."""
    run, now = view_model.run, view_model.now
    definition, address = parsed_definition(run.resolved_definition_id), reverse("admin:run_debug", args=[run.pk])
    rows = Task.objects.filter(run=run).values_list("ref", "iteration_path", "status") if run.ended_at is None else ()
    tasks = {Key(ref, parse_iteration_path(path)): status not in TASK.final for ref, path, status in rows}
    steps, begun = list(definition.steps) if definition else [], {key.ref for key in tasks}
    first = next((ref for ref in steps if ref not in begun), "")
    stop_rows = []
    for stop in stops_of_run(run, now):
        behind = set(steps[steps.index(stop.key.ref) + 1 :] if stop.key.ref in steps else steps)
        ahead = steps_ahead(definition, tasks, stop.key) if definition else []
        ordered = [*filter(behind.__contains__, ahead), *(ref for ref in ahead if ref not in behind)]
        stop_rows.append(_stop_row(stop, ordered, view_model))
    return {
        "stops": stop_rows,
        **breakpoints_context(live_breakpoints_of(run.debug, now), steps, address, first),
        "variables": _variables_text(run),
        **_evaluate(view_model),
    }


def _stop_row(stop: StopDetails, steps: Sequence[str], view_model: RunViewModel) -> dict[str, Any]:
    """Return a stop with the steps to run to."""
    text = json.dumps(stop.value, indent=2, ensure_ascii=False) if stop.payload else ""
    return {
        "stop": stop,
        "steps": steps[:MAX_STEPS],
        "address": view_model.query.address(task=stop.task, attempt=None),
        "text": text if len(text) <= MAX_INLINE_BYTES else "",
        "payload_label": payload_label(stop.payload) if stop.payload else "",
    }


def _variables_text(run: Any) -> str:
    """Return the variables as a text to edit, or an empty text if they are large."""
    variables = run.small_variables
    return "" if variables is None else json.dumps(variables, indent=2, ensure_ascii=False)


def _evaluate(view_model: RunViewModel) -> dict[str, Any]:
    text = view_model.query["expression"]
    if not text:
        return {"expression": ""}
    try:
        return {"expression": text, "result": render_tree(evaluate_expression(view_model.run.pk, text))}
    except RequestRefused as refused:
        return {"expression": text, "refusal": refused.message}


def handle_debugger(request: HttpRequest, run_id: str) -> HttpResponse:
    """Execute a command of the debugger, and show its result on the tab."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    require_run_permission(request, DEBUG_PERMISSION, run_id)
    require_run_permission(request, PERMISSION, run_id)
    by, reason = request.user.get_username(), request.POST.get("reason", "").strip()
    try:
        messages.success(request, _execute(request, run_id, by, reason))
    except RequestRefused as refused:
        show_refusal(request, refused)
    return HttpResponseRedirect(f"{run_address(run_id)}?tab=debugger")


def _execute(request: HttpRequest, run_id: str, by: str, reason: str) -> str:
    """Execute the command that the form names, and return what was done."""
    form, do = request.POST, request.POST.get("do", "")
    if do == "set":
        debugging.set_breakpoint(run_id, parse_breakpoint_form(form), by, reason)
        return _("Breakpoint set.")
    if do == "remove":
        debugging.remove_breakpoint(run_id, form.get("breakpoint", ""), by, reason)
        return _("Breakpoint removed.")
    debugging.continue_run(run_id, _continue_request(form, do), by, reason)
    return CONTINUED[do] % {"ref": form.get("ref", "")}


CONTINUED = {
    "continue": gettext_lazy("The run continues."),
    "over": gettext_lazy("The step continues. The run stops before the next step."),
    "into": gettext_lazy("The step continues. The run stops before the first step of the sub-workflow."),
    "to": gettext_lazy("The run continues and stops before %(ref)s."),
}
"""What a command on a stopped task has done, by its action."""


def _continue_request(form: Any, do: str) -> ContinueRequest:
    """Return how the task continues, with the payloads that the form has changed."""
    payload = form.get("payload", "")
    if payload not in ("", "input", "output"):
        raise Invalid(_("Unknown payload."))
    given = {payload: _parse_edited(form, "value", payload_label(payload))} if payload else {}
    variables = _parse_edited(form, "variables", payload_label("variables"))
    return ContinueRequest(form.get("attempt", ""), do, form.get("ref", ""), variables=variables or {}, **given)


def _parse_edited(form: Any, name: str, label: str) -> dict[str, Any] | None:
    """Return the document of a field, or None if it equals the one that the form showed."""
    text = form.get(name, "")
    if not text.strip() or _normalize(text) == _normalize(form.get(f"{name}_before", "")):
        return None
    return parse_json_object(text, label)


def _normalize(text: str) -> str:
    """Return the text with the line ends of the server, because browsers send others."""
    return text.replace("\r\n", "\n").strip()
