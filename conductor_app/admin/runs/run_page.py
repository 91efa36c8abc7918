"""Page of one run: the page, its fragments that refresh while the run is open, its documents and its actions."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from ... import clock
from ...core.errors import RequestRefused
from ...core.states import RUNNING
from ...insight.definitions.parsed_definitions import parsed_definition
from ...insight.runs.missing_run import explain_missing_run
from ...models import Run
from ..documents import json_file_response
from ..error_messages import require_permission, show_refusal
from ..fragments import fragment_response, html_revision
from ..page_tabs import tabs_context
from ..tasks.task_actions import PERMISSION, task_actions
from .run_actions import RUN_ACTIONS, available_actions
from .run_labels import label_context
from .run_tabs import TABS
from .run_view_model import (
    DOCUMENTS,
    RunViewModel,
    find_readable_run,
    head_context,
    opened_panel,
    run_address,
    run_view_model,
)

START_PERMISSION = "conductor.execute_workflowdefinition"


def run_page(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str) -> HttpResponse:
    """Render the page of a run. If the run was deleted, explain why.

    Raises:
        Http404: when no such run is known.
    """
    try:
        run = _find_run(request, run_id)
    except Http404:
        if why := explain_missing_run(run_id, clock.now()):
            return _missing_run_page(model_admin, request, run_id, why)
        raise
    context = {
        **model_admin.admin_site.each_context(request),
        "title": f"{run.name} v{run.version}",
        "opts": Run._meta,
        **_page_context(run, request),
    }
    html = render_to_string("ops/run/parts.html", context, request)
    return TemplateResponse(
        request, "admin/conductor/run/page.html", {**context, "parts": html, "live_revision": html_revision(html)}
    )


def _missing_run_page(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str, why: str) -> HttpResponse:
    context = {"what": _("Run %(id)s") % {"id": run_id}, "why": why, "run_id": run_id}
    return TemplateResponse(
        request, "ops/run/expired.html", model_admin.admin_site.each_context(request) | context, status=410
    )


def run_fragment(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str) -> HttpResponse:
    """Return the parts that change with the run, or 204 if the page already shows them."""
    run = _find_run(request, run_id)
    return fragment_response(request, "ops/run/parts.html", _page_context(run, request))


def _page_context(run: Run, request: HttpRequest) -> dict[str, Any]:
    """Return the context for the tab, the task and the filters in the address."""
    view_model = run_view_model(run, request.GET)
    actions = available_actions(run.status, request.user.has_perm)
    panel = opened_panel(view_model)
    acts = task_actions(panel.attempt if panel else None, view_model.now, request.user.has_perm)
    return {
        **actions,
        **head_context(view_model),
        **tabs_context(TABS, view_model, request),
        "panel": panel,
        "task_acts": acts,
    } | _unreached_step_context(view_model, request)


def _unreached_step_context(view_model: RunViewModel, request: HttpRequest) -> dict[str, Any]:
    """Return the context of a selected step that the run has not reached, and whether the user may skip or jump."""
    query = view_model.query["task"]
    definition = parsed_definition(view_model.run.resolved_definition_id) if query and view_model.task is None else None
    return {
        "unreached": definition.step(query) if definition else None,
        "may_label": request.user.has_perm(PERMISSION),
        **label_context(view_model.run),
        "may_lead": view_model.run.status == RUNNING and request.user.has_perm(PERMISSION),
    }


def raw_document(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str, field: str) -> HttpResponse:
    """Download a document of the run as JSON.

    Raises:
        Http404: when there is no such document.
    """
    run = _find_run(request, run_id)
    if field not in DOCUMENTS:
        raise Http404
    return json_file_response(getattr(run, field), f"{run.pk}-{field}")


def handle_action(request: HttpRequest, run_id: str, name: str) -> HttpResponse:
    """Execute the command of a button and show its result on the page.

    Raises:
        Http404: when the action is unknown.
    """
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    action = RUN_ACTIONS.get(name)
    if action is None:
        raise Http404
    require_permission(request, action.permission)
    reason = request.POST.get("reason", "").strip()
    try:
        action.command(run_id, request.user.get_username(), reason, **action.parse_options(request.POST))
        messages.success(request, str(action.done))
    except RequestRefused as refused:
        show_refusal(request, refused, *alternative_actions(run_id, request.user.has_perm))
    return HttpResponseRedirect(run_address(run_id))


def alternative_actions(run_id: str, has_permission: Callable[[str], bool]) -> list[tuple[str, str]]:
    """Return the actions that are possible after a rejected one, with their addresses."""
    run = find_readable_run(run_id)
    if run is None:
        return []
    planner = reverse("admin:plan", args=[run_id])
    alternatives = [
        (str(action.label), f"{planner}?do={action.name}" if action.is_planned else f"#act-{action.name}")
        for action in available_actions(run.status, has_permission)["actions"]
    ]
    if run.definition_pk and has_permission(START_PERMISSION):
        start = reverse("admin:start_run", args=[run.definition_pk], query={"like": run_id})
        alternatives.append((_("Start a similar run"), start))
    return alternatives


def _find_run(request: HttpRequest, run_id: str) -> Run:
    require_permission(request, "conductor.view_run")
    run = find_readable_run(run_id)
    if run is None:
        raise Http404(_("No such run: %(id)s.") % {"id": run_id})
    return run
