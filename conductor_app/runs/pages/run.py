"""The page of one run: its tabs, fragments that refresh while the run is open, documents and actions."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import get_script_prefix, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.models import AuditEntry
from ...access.tokens import file_address
from ...access.visibility import may
from ...core.breakpoints import stops_of
from ...core.errors import RequestRefused
from ...core.states import RUNNING
from ...definitions.diagram.canvas import Diagram
from ...definitions.diagram.marks import DiagramFolding, IterationChoice, parse_choice
from ...definitions.diagram.pages import draw_definition
from ...definitions.models import ResolvedDefinition
from ...definitions.policies import type_label
from ...definitions.store import parsed_definition
from ...human_tasks.pages.tasks import may_act
from ...payloads.files import files_of
from ...payloads.models import UPLOADED, FileHandle
from ...tasks.pages.actions import PERMISSION, task_actions
from ...tasks.queries.tasks import attempts_of, count_tasks, tasks_of
from ...tasks.queries.waiting import is_queued
from ...utils import clock
from ...utils.formatting import format_duration
from ...utils.time_scale import TimeScale
from ...web.badges import format_size, relative_time, render_badge, running_time
from ...web.documents import json_file_response, payload_documents
from ...web.links import run_address
from ...web.pages import (
    PageTab,
    fragment_response,
    html_revision,
    render_to_string,
    require_permission_on_any,
    show_refusal,
    tabs_context,
)
from ..documents.workflows import export_run
from ..models import Run
from ..queries.recent import run_key
from ..queries.retention import explain_missing_run
from ..timeline.queries import TaskRow, is_held, iteration_filters, marks_of_run, task_rows
from ..timeline.tree import shown_status
from .actions import RUN_ACTIONS, available_actions, label_context, require_run_permission
from .debugger import DEBUG_PERMISSION, debugger_tab
from .history import run_events
from .timeline import run_scale, timeline_tab
from .view_model import (
    DOCUMENTS,
    RunViewModel,
    find_readable_run,
    head_context,
    no_such_run,
    opened_panel,
    run_view_model,
    status_chips,
    window_context,
)

MAX_AUDIT_ENTRIES = 100
TASKS_ON_PAGE = 100
TABS_WITHOUT_PANEL = ("data", "audit")
"""Tabs that show the whole run, beside which the panel of a task would only take room."""


def diagram_tab(view_model: RunViewModel) -> dict[str, Any]:
    """Return the diagram of the version that ran, with the status of each step in the chosen iterations.

    It collapses what is collapsed in the timeline.
    """
    plan = ResolvedDefinition.objects.filter(pk=view_model.run.resolved_definition_id).first()
    return {
        "picture": _draw_run(view_model, plan.document) if plan else None,
        "name": f"{view_model.run.name} v{view_model.run.version}",
    }


def _draw_run(view_model: RunViewModel, document: dict[str, Any]) -> Diagram:
    query = view_model.query
    choice = IterationChoice(
        parse_choice(query["iteration"]), lambda iteration: query.address(iteration=iteration or None)
    )
    marks = marks_of_run(view_model.run, iteration_filters(document, choice.chosen))
    folding = DiagramFolding(frozenset(query.node_ids("shut")), query.fold_address)
    ref = view_model.task.ref if view_model.task else ""
    picture = draw_definition(
        document, marks, chosen=ref, link=_step_address(view_model), iterations=choice, folding=folding
    )
    for node in picture.nodes:
        node.selects = True
        if node.mark and node.mark.iteration_path:
            node.href = query.address(task=f"{node.ref}__{node.mark.iteration_path.replace('.', '__')}", attempt=None)
    return picture


def _step_address(view_model: RunViewModel) -> Callable[[str, str], str]:
    return lambda ref, path: view_model.query.address(task=ref, attempt=None)


def tasks_tab(view_model: RunViewModel) -> dict[str, Any]:
    """Return all tasks as a table, or those in one status."""
    run, query = view_model.run, view_model.query
    counts, status = count_tasks(run), query["status"]
    tasks = tasks_of(run).filter(status=status) if status else tasks_of(run)
    window = Paginator(tasks, TASKS_ON_PAGE).get_page(query.number("page") or 1)
    scale = run_scale(view_model.lives)
    rows = task_rows(window.object_list, attempts_of(window.object_list), scale, view_model.now)
    return {
        "rows": [_task_row(row, view_model, scale) for row in rows],
        "chips": status_chips(counts, query),
        **window_context(window, query),
    }


def _task_row(row: TaskRow, view_model: RunViewModel, scale: TimeScale) -> dict[str, Any]:
    now, last = view_model.now, row.last
    worked, queued = row.times(scale, now)
    is_open = last is not None and last.ended_at is None
    waits, is_without_worker = last is not None and is_queued(last), last is None or is_held(last)
    return {
        # The browser counts the time that passes, so that the page need not be loaded again for it.
        "working": running_time(now - worked) if is_open and not waits else format_duration(worked),
        "queued": "–" if is_without_worker else running_time(now - queued) if waits else format_duration(queued),
        "work_label": _("waiting") if is_without_worker else _("working"),
        "kind": " · ".join(dict.fromkeys((type_label(row.task.type), *({row.task.name} - {row.task.ref})))),
        "task": row.task,
        "worker": row.last.worker if row.last else "",
        "badge": render_badge(shown_status(row.task.type, row.task.status)),
        "tries": len(row.attempts),
        "address": view_model.query.address(task=str(row.task), attempt=None),
        "is_chosen": view_model.task is not None and row.task.pk == view_model.task.pk,
    }


def data_tab(view_model: RunViewModel) -> dict[str, Any]:
    """Return input, output and variables, their files, and the addresses of the whole run as one document."""
    return {
        "script_prefix": get_script_prefix(),
        "documents": payload_documents(view_model.run, DOCUMENTS),
        "files": [_file_row(row) for row in files_of(view_model.run.pk)],
    }


def _file_row(row: FileHandle) -> dict[str, Any]:
    # The address carries its own permission. It expires after the longest time that a page stays open.
    address = file_address(row.run_id, row.pk, "GET")[0] if row.status == UPLOADED else ""
    shown = "–" if row.size is None else format_size(row.size)
    return {"file": row, "address": address, "size": shown, "at": relative_time(row.created_at)}


def audit_tab(view_model: RunViewModel) -> dict[str, Any]:
    """Return the actions of users and clients on the run."""
    entries = AuditEntry.objects.filter(object_type="run", object_id=view_model.run.pk).order_by("-at", "-id")
    return {"entries": entries[:MAX_AUDIT_ENTRIES]}


def _debugger_tab(view_model: RunViewModel) -> dict[str, Any]:
    """Return the debugger with the diagram beside it."""
    return {**diagram_tab(view_model), **debugger_tab(view_model)}


TABS: dict[str, PageTab[RunViewModel]] = {
    tab.name: tab
    for tab in (
        PageTab("timeline", gettext_lazy("Timeline"), "ops/runs/timeline.html", timeline_tab),
        PageTab("diagram", gettext_lazy("Diagram"), "ops/runs/diagram.html", diagram_tab),
        PageTab("tasks", gettext_lazy("Tasks"), "ops/runs/tasks.html", tasks_tab),
        PageTab("data", gettext_lazy("Data"), "ops/runs/data.html", data_tab),
        PageTab("events", gettext_lazy("Events"), "ops/runs/events.html", run_events),
        PageTab("audit", gettext_lazy("Audit log"), "ops/runs/audit.html", audit_tab, "conductor.view_auditentry"),
        PageTab("debugger", gettext_lazy("Debugger"), "ops/runs/debugger.html", _debugger_tab, DEBUG_PERMISSION),
    )
}


VIEW_PERMISSION = "conductor.view_run"
START_PERMISSION = "conductor.execute_workflowdefinition"


def run_page(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str) -> HttpResponse:
    """Render the page of a run. If the run was deleted, explain why.

    Raises:
        Http404: when no such run is known.
    """
    try:
        run = _find_run(request, run_id)
    except Http404:
        # The record of a removed run does not name its definition, so that no grant applies to it.
        if request.user.has_perm(VIEW_PERMISSION) and (why := explain_missing_run(run_id, clock.now())):
            return _missing_run_page(model_admin, request, run_id, why)
        raise
    context = {
        **model_admin.admin_site.each_context(request),
        "title": f"{run.name} · {run_key(run).text}",
        "opts": Run._meta,
        **_page_context(run, request),
    }
    html = render_to_string("ops/runs/parts.html", context, request)
    return TemplateResponse(
        request, "admin/conductor/run/page.html", {**context, "parts": html, "live_revision": html_revision(html)}
    )


def _missing_run_page(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str, why: str) -> HttpResponse:
    context = {"what": _("Run %(id)s") % {"id": run_id}, "why": why, "run_id": run_id}
    return TemplateResponse(
        request, "ops/runs/expired.html", model_admin.admin_site.each_context(request) | context, status=410
    )


def run_fragment(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str) -> HttpResponse:
    """Return the parts that change with the run, or 204 if the page already shows them."""
    run = _find_run(request, run_id)
    return fragment_response(request, "ops/runs/parts.html", _page_context(run, request))


def _page_context(run: Run, request: HttpRequest) -> dict[str, Any]:
    """Return the context for the tab, the task and the filters in the address."""
    view_model = run_view_model(run, request.GET)
    may_do = partial(may, request.user, row=run)
    actions = available_actions(run.status, may_do)
    tabs = tabs_context(TABS, view_model, run, request)
    # The debugger shows the task that the run stops at itself.
    has_panel = tabs["tab"] not in TABS_WITHOUT_PANEL and (tabs["tab"] != "debugger" or bool(view_model.query["task"]))
    panel = opened_panel(view_model) if has_panel else None
    acts = task_actions(panel.attempt if panel else None, view_model.now, may_do)
    definition = parsed_definition(run.resolved_definition_id)
    leads_to_debugger = stops_of(run.debug or {}) and tabs["tab"] != "debugger" and may_do(DEBUG_PERMISSION)
    head, shown = head_context(view_model), panel.attempt if panel and panel.is_for_people else None
    asked = next((each for each in view_model.cause.attempts if each.pk == head["answerable"]), None)
    return {
        "debugger_address": view_model.query.address(tab="debugger", task=None) if leads_to_debugger else "",
        "failure_workflow": str(definition.document.get("failureWorkflow") or "") if definition else "",
        "other_view": _other_view(view_model, tabs["tab"]) if panel else None,
        **actions,
        **head,
        "answerable": head["answerable"] if asked and may_act(request, asked) else "",
        "may_answer": shown is not None and may_act(request, shown),
        **tabs,
        "panel": panel,
        "task_acts": acts,
        **_unreached_step_context(view_model, request),
        "has_panel": has_panel,
    }


def _other_view(view_model: RunViewModel, tab: str) -> dict[str, str]:
    """Return the link that shows the selected task in the diagram, or from there in the timeline."""
    if tab == "diagram":
        return {"label": _("In the timeline"), "address": view_model.query.address(tab=None)}
    return {"label": _("In the diagram"), "address": view_model.query.address(tab="diagram")}


def _unreached_step_context(view_model: RunViewModel, request: HttpRequest) -> dict[str, Any]:
    """Return the context of a selected step that the run has not reached, and whether the user may skip or jump."""
    may_control = may(request.user, PERMISSION, view_model.run)
    query = view_model.query["task"]
    definition = parsed_definition(view_model.run.resolved_definition_id) if query and view_model.task is None else None
    return {
        "unreached": definition.step(query) if definition else None,
        "may_label": may_control,
        **label_context(view_model.run),
        "may_lead": view_model.run.status == RUNNING and may_control,
    }


def raw_document(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str, field: str) -> HttpResponse:
    """Download a document of the run as JSON."""
    run = _find_run(request, run_id)
    if field not in DOCUMENTS:
        raise Http404
    return json_file_response(getattr(run, field), f"{run.pk}-{field}")


def export_run_file(request: HttpRequest, run_id: str) -> HttpResponse:
    """Download the run as a bundle."""
    _find_run(request, run_id)
    run = Run.objects.get(pk=run_id)
    try:
        document = export_run(run, clock.now(), request.user.get_username(), request.get_host())
    except RequestRefused as refused:
        show_refusal(request, refused)
        return HttpResponseRedirect(run_address(run_id))
    return json_file_response(document, f"run-{run.pk}")


def handle_action(request: HttpRequest, run_id: str, name: str) -> HttpResponse:
    """Execute the command of a button and show its result on the page."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    action = RUN_ACTIONS.get(name)
    if action is None:
        raise Http404
    require_run_permission(request, action.permission, run_id)
    reason = request.POST.get("reason", "").strip()
    try:
        action.command(run_id, request.user.get_username(), reason, **action.parse_options(request.POST))
        messages.success(request, str(action.done))
    except RequestRefused as refused:
        show_refusal(request, refused, *alternative_actions(run_id, request))
    return HttpResponseRedirect(run_address(run_id))


def alternative_actions(run_id: str, request: HttpRequest) -> list[tuple[str, str]]:
    """Return the actions that are possible after a rejected one, with their addresses."""
    run = find_readable_run(run_id)
    if run is None:
        return []
    may_do = partial(may, request.user, row=run)
    planner = reverse("admin:plan", args=[run_id])
    alternatives = [
        (str(action.label), f"{planner}?do={action.name}" if action.is_planned else f"#act-{action.name}")
        for action in available_actions(run.status, may_do)["actions"]
    ]
    if run.definition_pk and may_do(START_PERMISSION):
        start = reverse("admin:start_run", args=[run.definition_pk], query={"like": run_id})
        alternatives.append((_("Start a similar run"), start))
    return alternatives


def _find_run(request: HttpRequest, run_id: str) -> Run:
    require_permission_on_any(request, VIEW_PERMISSION)
    run = find_readable_run(run_id)
    if run is None:
        raise Http404(no_such_run(run_id))
    return run
