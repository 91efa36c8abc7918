"""Page of one task group: its fragments that refresh, and actions on its tasks."""

from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from ... import clock
from ...models import AuditEntry, TaskGroup
from ..badges import exact_time
from ..page_tabs import tabs_context
from .group_actions import confirmation_context, group_actions, pending_approvals, submit_action
from .group_tabs import TABS
from .group_view_model import GroupViewModel, group_revision, group_view_model, head_context
from .page_addresses import group_address

PARTS_TEMPLATE = "ops/group/parts.html"
CHANGE_PERMISSION = "conductor.change_standalonetask"


class GroupExpired(Exception):
    """The group has expired. The message explains it to the user."""


def group_page(site: AdminSite, request: HttpRequest, group_id: str) -> HttpResponse:
    """Render the page of a group."""
    try:
        group = _find_group(request, group_id)
    except GroupExpired as gone:
        context = {
            **site.each_context(request),
            "title": _("Task group"),
            "why": str(gone),
            "what": _("This task group"),
        }
        return TemplateResponse(request, "ops/group/expired.html", context, status=410)
    context = {
        **site.each_context(request),
        "title": _("Task group"),
        "opts": TaskGroup._meta,
        **_page_context(group, request),
    }
    context |= {
        "parts": render_to_string(PARTS_TEMPLATE, context, request),
        "live_revision": _current_revision(group.pk, request),
    }
    return TemplateResponse(request, "admin/conductor/taskgroup/page.html", context)


def group_fragment(request: HttpRequest, group_id: str) -> HttpResponse:
    """Return the parts that change with the group, or 204 if nothing has changed.

    Raises:
        Http404: when the group is unknown or has expired.
    """
    try:
        group = _find_group(request, group_id)
    except GroupExpired as gone:
        raise Http404(str(gone)) from gone
    now = _current_revision(group_id, request)
    if request.GET.get("rev") == now:
        return HttpResponse(status=204)
    html = render_to_string(PARTS_TEMPLATE, _page_context(group, request), request)
    return HttpResponse(html, headers={"X-Revision": now, "Cache-Control": "no-store"})


def handle_action(site: AdminSite, request: HttpRequest, group_id: str) -> HttpResponse:
    """Preview an action, or execute it if the form confirms the preview.

    Raises:
        PermissionDenied: when the user may not change tasks.
        Http404: when the group is unknown or has expired.
    """
    if not request.user.has_perm(CHANGE_PERMISSION):
        raise PermissionDenied(CHANGE_PERMISSION)
    try:
        view_model = group_view_model(
            _find_group(request, group_id), request.POST if request.method == "POST" else request.GET
        )
    except GroupExpired as gone:
        raise Http404(str(gone)) from gone
    if request.method == "POST":
        submit_action(request, view_model)
        return HttpResponseRedirect(group_address(group_id) + view_model.query.address())
    context = confirmation_context(request, view_model)
    if context is None:
        messages.error(request, _("Missing or unknown action."))
        return HttpResponseRedirect(group_address(group_id) + view_model.query.address())
    context |= {
        **site.each_context(request),
        "title": _("Task group"),
        "opts": TaskGroup._meta,
        "group": view_model.group,
    }
    return TemplateResponse(request, "ops/group/confirm.html", context)


def _page_context(group: TaskGroup, request: HttpRequest) -> dict[str, Any]:
    """Return the context for the tab and the filters in the address."""
    view_model: GroupViewModel = group_view_model(group, request.GET)
    may_act = request.user.has_perm(CHANGE_PERMISSION)
    approvals = pending_approvals(group.pk, request.user.get_username())
    acts = {"may_act": may_act, "verbs": group_actions() if may_act else [], "approvals": approvals}
    return {**head_context(view_model), **tabs_context(TABS, view_model, request), **acts}


def _current_revision(group_id: str, request: HttpRequest) -> str:
    return group_revision(group_id, clock.now())


def _find_group(request: HttpRequest, group_id: str) -> TaskGroup:
    """Return the group. Raises GroupExpired if it has expired, Http404 if no such group is known."""
    if not request.user.has_perm("conductor.view_taskgroup"):
        raise PermissionDenied("conductor.view_taskgroup")
    clean_id = group_id.replace("\0", "")[:64]
    group = TaskGroup.objects.filter(pk=clean_id).first()
    if group is not None and group.expires_at > clock.now():
        return group
    if group is not None:
        raise GroupExpired(
            _("The group expired at %(time)s. Its tasks are deleted within an hour.")
            % {"time": exact_time(group.expires_at)}
        )
    if AuditEntry.objects.filter(object_type="task_group", object_id=clean_id).exists():
        raise GroupExpired(_("The group has expired and was deleted with its tasks. The audit log has its history."))
    raise Http404(_("No such task group: %(id)s. It may have expired and been deleted.") % {"id": clean_id})
