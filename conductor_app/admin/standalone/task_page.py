"""Page of one standalone task: its fragments that refresh, the log of an attempt, and its actions."""

from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.signed_links import DOWNLOAD, artifact_address
from ...core.errors import RequestRefused
from ...engine.standalone.clone_task import clone_task
from ...engine.standalone.task_actions import PRIORITIZE, apply_action
from ...insight.standalone.task_status import PRIORITIES
from ...models import AuditEntry, StandaloneTask
from ..badges import relative_time
from ..error_messages import require_permission, show_refusal
from ..fragments import fragment_response, html_revision
from ..json_tree import render_tree
from .artifact_links import VIEW_ALL_PERMISSION, is_readable_by
from .page_addresses import standalone_task_address
from .standalone_log import log_context, log_revision, select_log
from .task_view_model import TaskViewModel, parts_context, task_view_model

PERMISSION = "conductor.change_standalonetask"
ACTION_MESSAGES = {
    "schedule": gettext_lazy("Scheduled."),
    "rerun": gettext_lazy("Rerun started."),
    "cancel": gettext_lazy("Canceled."),
    PRIORITIZE: gettext_lazy("Priority changed."),
}
PARTS_TEMPLATE, LOG_TEMPLATE = "ops/group/task_parts.html", "ops/group/log.html"
MAX_AUDIT_ENTRIES = 50


def task_page(site: AdminSite, request: HttpRequest, task_id: str) -> HttpResponse:
    """Render the page of a task."""
    if request.method == "POST":
        return _handle_action(request, _find_task(request, task_id).pk)
    view_model = _load_view_model(request, task_id)
    context = {
        **site.each_context(request),
        "title": view_model.name,
        "opts": StandaloneTask._meta,
        **_page_context(view_model, request),
    }
    context |= {"parts": render_to_string(PARTS_TEMPLATE, context, request)}
    context |= {
        "live_revision": html_revision(context["parts"]),
        **_log_section(view_model, request),
        **_static_context(view_model, request),
    }
    return TemplateResponse(request, "admin/conductor/standalonetask/page.html", context)


def task_fragment(request: HttpRequest, task_id: str) -> HttpResponse:
    """Return the parts that change with the task, or 204 if the page already shows them."""
    return fragment_response(request, PARTS_TEMPLATE, _page_context(_load_view_model(request, task_id), request))


def log_fragment(request: HttpRequest, task_id: str) -> HttpResponse:
    """Return the end of the log, or 204 if nothing was added."""
    view_model = _load_view_model(request, task_id)
    artifact = select_log(view_model)
    revision = log_revision(view_model, artifact)
    if request.GET.get("rev") == revision:
        return HttpResponse(status=204)
    html = render_to_string(LOG_TEMPLATE, {"log": log_context(view_model, artifact, request.user)}, request)
    return HttpResponse(html, headers={"X-Revision": revision, "Cache-Control": "no-store"})


def artifact_redirect(request: HttpRequest, task_id: str) -> HttpResponse:
    """Redirect to the content of an artifact. This link does not expire, unlike the signed address.

    Raises:
        Http404: when there is no such artifact.
        PermissionDenied: when the user may not read it.
    """
    view_model = _load_view_model(request, task_id)
    row = next((each for each in view_model.artifacts if each.name == request.GET.get("artifact", "")), None)
    if row is None:
        raise Http404(_("No such artifact."))
    if not is_readable_by(row, request.user):
        raise PermissionDenied(VIEW_ALL_PERMISSION)
    return HttpResponseRedirect(artifact_address(row.task_id, row.number, row.name, DOWNLOAD))


def _page_context(view_model: TaskViewModel, request: HttpRequest) -> dict[str, Any]:
    return {**parts_context(view_model, request.user), "may_act": request.user.has_perm(PERMISSION)}


def _log_section(view_model: TaskViewModel, request: HttpRequest) -> dict[str, Any]:
    """Return the log, and the address that polls its end."""
    artifact = select_log(view_model)
    context = {"log": log_context(view_model, artifact, request.user)}
    query = {"attempt": view_model.number, "artifact": artifact.name if artifact else ""}
    html = render_to_string(LOG_TEMPLATE, context, request)
    live = reverse("admin:standalone_log", args=[view_model.standalone.pk], query=query)
    return {**context, "log_html": html, "log_live": live, "log_revision": log_revision(view_model, artifact)}


def _static_context(view_model: TaskViewModel, request: HttpRequest) -> dict[str, Any]:
    """Return the parts that do not change while the page is open."""
    entries = AuditEntry.objects.filter(object_type="task", object_id=view_model.standalone.pk).order_by("-at", "-id")
    may_see = request.user.has_perm("conductor.view_auditentry")
    return {
        "definition": render_tree(view_model.standalone.definition),
        "scopes": view_model.standalone.definition.get("scopes") or [],
        "audit": [(entry, relative_time(entry.at)) for entry in entries[:MAX_AUDIT_ENTRIES]] if may_see else [],
    }


def _handle_action(request: HttpRequest, task_id: str) -> HttpResponse:
    require_permission(request, PERMISSION)
    verb, reason = request.POST.get("do", ""), request.POST.get("reason", "").strip()[:500]
    by = request.user.get_username()
    try:
        if verb == "again":
            new = clone_task(task_id, by, reason)
            messages.success(request, _("Task created."))
            return HttpResponseRedirect(standalone_task_address(new))
        apply_action(
            verb, task_id, by, reason, PRIORITIES.get(request.POST.get("priority", ""), 0) if verb == PRIORITIZE else 0
        )
        messages.success(request, ACTION_MESSAGES[verb])
    except RequestRefused as refused:
        show_refusal(request, refused)
    return HttpResponseRedirect(standalone_task_address(task_id))


def _load_view_model(request: HttpRequest, task_id: str) -> TaskViewModel:
    return task_view_model(_find_task(request, task_id), request.GET)


def _find_task(request: HttpRequest, task_id: str) -> StandaloneTask:
    if not request.user.has_perm("conductor.view_standalonetask"):
        raise PermissionDenied("conductor.view_standalonetask")
    standalone = StandaloneTask.objects.with_attempts().filter(pk=task_id.replace("\0", "")).first()
    if standalone is None:
        raise Http404(_("No such task: %(id)s. It may have expired and been deleted.") % {"id": task_id[:64]})
    return standalone
