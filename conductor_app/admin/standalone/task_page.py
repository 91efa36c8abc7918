"""One stand-alone task: its page, the parts of it that follow the task, the log of an attempt, and its buttons."""

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

from ...access.signed_links import FETCH, artifact_address
from ...core.errors import RequestRefused
from ...engine.standalone.clone_task import clone_task
from ...engine.standalone.task_actions import PRIORITIZE, apply_action
from ...insight.standalone import PRIORITIES
from ...models import AuditEntry, StandaloneTask
from ..badges import relative_time
from ..error_messages import require_permission, show_refusal
from ..fragments import fragment_response, html_revision
from ..json_tree import render_tree
from .addresses import standalone_address
from .artifact_links import SEES_ALL, is_readable_by
from .log import chosen_log, log_context, revision_of_log
from .task_view_model import TaskViewModel, parts_context, task_view_model

PERMISSION = "conductor.change_standalonetask"
DONE = {
    "schedule": gettext_lazy("It may be handed out now."),
    "rerun": gettext_lazy("It is tried once more."),
    "cancel": gettext_lazy("It is canceled."),
    PRIORITIZE: gettext_lazy("It has another priority."),
}
PARTS, LOG = "ops/group/task_parts.html", "ops/group/log.html"
MOST_AUDITED = 50


def task_page(site: AdminSite, request: HttpRequest, task_id: str) -> HttpResponse:
    """The whole page."""
    if request.method == "POST":
        return _act(request, _find_task(request, task_id).pk)
    story = _story(request, task_id)
    shown = {
        **site.each_context(request),
        "title": story.name,
        "opts": StandaloneTask._meta,
        **_page_context(story, request),
    }
    shown |= {"parts": render_to_string(PARTS, shown, request)}
    shown |= {"live_revision": html_revision(shown["parts"]), **_log_of(story, request), **_below(story, request)}
    return TemplateResponse(request, "admin/conductor/solo/page.html", shown)


def task_fragment(request: HttpRequest, task_id: str) -> HttpResponse:
    """What changes with the task; 204 where it says what the page shows already."""
    return fragment_response(request, PARTS, _page_context(_story(request, task_id), request))


def log_fragment(request: HttpRequest, task_id: str) -> HttpResponse:
    """The end of the log again; 204 where nothing has been added to it."""
    story = _story(request, task_id)
    chosen = chosen_log(story)
    revision = revision_of_log(story, chosen)
    if request.GET.get("rev") == revision:
        return HttpResponse(status=204)
    html = render_to_string(LOG, {"log": log_context(story, chosen, request.user)}, request)
    return HttpResponse(html, headers={"X-Revision": revision, "Cache-Control": "no-store"})


def artifact_redirect(request: HttpRequest, task_id: str) -> HttpResponse:
    """To the content of an artifact, where it is shut in: a link on a page that is long open still leads there."""
    story = _story(request, task_id)
    row = next((each for each in story.artifacts if each.name == request.GET.get("artifact", "")), None)
    if row is None:
        raise Http404(_("There is no such artifact."))
    if not is_readable_by(row, request.user):
        raise PermissionDenied(SEES_ALL)
    return HttpResponseRedirect(artifact_address(row.task_id, row.number, row.name, FETCH))


def _page_context(story: TaskViewModel, request: HttpRequest) -> dict[str, Any]:
    return {**parts_context(story, request.user), "may_act": request.user.has_perm(PERMISSION)}


def _log_of(story: TaskViewModel, request: HttpRequest) -> dict[str, Any]:
    """The log below, and where its end is asked for again."""
    chosen = chosen_log(story)
    shown = {"log": log_context(story, chosen, request.user)}
    asked = {"attempt": story.number, "artifact": chosen.name if chosen else ""}
    html = render_to_string(LOG, shown, request)
    live = reverse("admin:standalone_log", args=[story.standalone.pk], query=asked)
    return {**shown, "log_html": html, "log_live": live, "log_revision": revision_of_log(story, chosen)}


def _below(story: TaskViewModel, request: HttpRequest) -> dict[str, Any]:
    """What stays as it is while somebody looks."""
    entries = AuditEntry.objects.filter(object_type="task", object_id=story.standalone.pk).order_by("-at", "-id")
    may_see = request.user.has_perm("conductor.view_auditentry")
    return {
        "definition": render_tree(story.standalone.definition),
        "scopes": story.standalone.definition.get("scopes") or [],
        "audit": [(entry, relative_time(entry.at)) for entry in entries[:MOST_AUDITED]] if may_see else [],
    }


def _act(request: HttpRequest, task_id: str) -> HttpResponse:
    require_permission(request, PERMISSION)
    verb, reason = request.POST.get("do", ""), request.POST.get("reason", "").strip()[:500]
    by = request.user.get_username()
    try:
        if verb == "again":
            new = clone_task(task_id, by, reason)
            messages.success(request, _("This is the new task."))
            return HttpResponseRedirect(standalone_address(new))
        apply_action(
            verb, task_id, by, reason, PRIORITIES.get(request.POST.get("priority", ""), 0) if verb == PRIORITIZE else 0
        )
        messages.success(request, DONE[verb])
    except RequestRefused as refused:
        show_refusal(request, refused)
    return HttpResponseRedirect(standalone_address(task_id))


def _story(request: HttpRequest, task_id: str) -> TaskViewModel:
    return task_view_model(_find_task(request, task_id), request.GET)


def _find_task(request: HttpRequest, task_id: str) -> StandaloneTask:
    if not request.user.has_perm("conductor.view_standalonetask"):
        raise PermissionDenied("conductor.view_standalonetask")
    standalone = StandaloneTask.objects.with_attempts().filter(pk=task_id.replace("\0", "")).first()
    if standalone is None:
        raise Http404(_("There is no task %(id)s. It may have expired, and been deleted.") % {"id": task_id[:64]})
    return standalone
