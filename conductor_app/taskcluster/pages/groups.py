"""The page of a task group, with its tabs and actions, and the list of groups.

An action applies to the selected tasks, or to all that match the filter.
"""

from typing import Any, NamedTuple

from django.contrib import admin, messages
from django.contrib.admin import AdminSite
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from ...access.models import AuditEntry
from ...core.errors import RequestRefused
from ...utils import clock
from ...utils.formatting import LazyText
from ...web.badges import exact_time, format_count, relative_time, render_badge
from ...web.links import queue_address, standalone_task_address, task_group_address
from ...web.pages import BoundedChangeList, PageTab, ReadOnlyAdmin, show_refusal, tabs_context
from ..commands import groups, tasks
from ..models import PendingApproval, StandaloneTask, TaskGroup
from ..queries.groups import GroupMember, GroupProgress, groups_progress, most_urgent_first
from ..queries.tasks import NAMES_OF_PRIORITIES, PRIORITIES
from .group_view import (
    GroupViewModel,
    diagram_tab,
    filter_context,
    group_revision,
    group_view_model,
    head_context,
    load_task_page,
    progress_bar,
    timeline_tab,
)

MAX_NAMED = 20
PAGE_SIZE = 100
MAX_AUDIT_ENTRIES = 100
PARTS_TEMPLATE = "ops/taskcluster/parts.html"
CHANGE_PERMISSION = "conductor.change_standalonetask"


class GroupExpired(Exception):
    """The group has expired. The message explains it to the user."""


class GroupAction(NamedTuple):
    """One action. `description`: its effect on each task."""

    name: str
    label: str | LazyText
    description: str | LazyText


GROUP_ACTIONS = (
    GroupAction("rerun", gettext_lazy("Rerun"), gettext_lazy("Runs each task again, with all its retries.")),
    GroupAction(
        "schedule",
        pgettext_lazy("button", "Schedule"),
        gettext_lazy("Schedules each task now, regardless of its dependencies."),
    ),
    GroupAction(
        "cancel",
        gettext_lazy("Cancel"),
        gettext_lazy("Workers stop at their next request. Tasks that depend on a canceled task stay unscheduled."),
    ),
    GroupAction(tasks.PRIORITIZE, gettext_lazy("Set priority"), gettext_lazy("Sets this priority for each task.")),
)
ACTIONS_BY_NAME = {verb.name: verb for verb in GROUP_ACTIONS}


def group_actions() -> list[tuple[str, Any]]:
    """Return the actions that the form offers."""
    return [(verb.name, verb.label) for verb in GROUP_ACTIONS]


def priority_names() -> list[str]:
    """Return the names of priorities, highest first."""
    return [NAMES_OF_PRIORITIES[number] for number in sorted(NAMES_OF_PRIORITIES, reverse=True)]


def selected_tasks(view_model: GroupViewModel, form_data: QueryDict) -> list[GroupMember]:
    """Return the selected tasks, or all tasks that match the filter if none is selected."""
    ticked = set(form_data.getlist("task"))
    return [each for each in view_model.members if each.id in ticked] if ticked else view_model.visible_members


def confirmation_context(request: HttpRequest, view_model: GroupViewModel) -> dict[str, Any] | None:
    """Return the preview of an action, or None if the form names no action."""
    verb = ACTIONS_BY_NAME.get(request.GET.get("do", ""))
    priority = PRIORITIES.get(request.GET.get("priority", ""), 0)
    if verb is None:
        return None
    try:
        preview = groups.preview_bulk_action(selected_tasks(view_model, request.GET), verb.name, priority)
    except RequestRefused:
        return None
    return {
        "verb": verb,
        "priority": request.GET.get("priority", "") if verb.name == tasks.PRIORITIZE else "",
        "preview": preview,
        "count": len(preview.moved),
        "needs_approval": groups.requires_group_approval(len(preview.moved)),
        "named": [(each, render_badge(each.state)) for each in most_urgent_first(preview.moved, count=MAX_NAMED)],
        "more": max(len(preview.moved) - MAX_NAMED, 0),
        "ticked": request.GET.getlist("task"),
        "parameters": view_model.query.current_choices().items(),
        "back": view_model.query.address(),
    }


def submit_action(request: HttpRequest, view_model: GroupViewModel) -> None:
    """Execute the submitted action and add a message with its result."""
    verb, reason = request.POST.get("do", ""), request.POST.get("reason", "").strip()[:500]
    by = request.user.get_username()
    try:
        if verb == "seal":
            groups.seal_group(view_model.group.pk, by, reason)
            messages.success(request, _("Group sealed. It accepts no more tasks."))
            return
        if verb == "watch":
            groups.watch_group(
                view_model.group.pk, request.POST.get("event", ""), request.POST.get("mail", "").strip(), by
            )
            messages.success(request, _("You will receive one email."))
            return
        if verb == "unwatch":
            groups.unwatch_group(view_model.group.pk, request.POST.get("watch", ""), by)
            messages.success(request, _("Notification removed."))
            return
        if verb in ("approve", "decline"):
            _answer_approval(request, view_model.group.pk, verb == "approve", reason)
            return
        _request_action(request, view_model, verb, by, reason)
    except RequestRefused as refused:
        show_refusal(request, refused)


def _request_action(request: HttpRequest, view_model: GroupViewModel, verb: str, by: str, reason: str) -> None:
    priority = PRIORITIES.get(request.POST.get("priority", ""), 0) if verb == tasks.PRIORITIZE else 0
    selected, seen = selected_tasks(view_model, request.POST), request.POST.get("seen", "")
    moved = groups.preview_bulk_action(selected, verb, priority).moved
    if not seen.isdecimal() or len(moved) > int(seen[:9]):
        # The user confirmed a number of tasks. More tasks require a new confirmation.
        messages.error(request, _("The number of tasks has increased in the meantime. Review the action again."))
        return
    if moved and groups.requires_group_approval(len(moved)):
        groups.request_approval(view_model.group.pk, [each.id for each in moved], verb, by, reason, priority)
        messages.warning(request, _("Waiting for approval. A second person must approve the action on this page."))
        return
    count = groups.request_bulk_action(view_model.group.pk, moved, verb, by, reason, priority)
    message = ngettext(
        "Requested for %(count)s task.",
        "Requested for %(count)s tasks. They are processed at up to 100 per second.",
        count,
    )
    messages.success(request, message % {"count": format_count(count)})


def _answer_approval(request: HttpRequest, group_id: str, is_approved: bool, reason: str) -> None:
    """Handle the decision of the second person about a pending action."""
    act, by = request.POST.get("act", ""), request.user.get_username()
    number = int(act) if act.isascii() and act.isdecimal() and len(act) < 19 else 0
    if not is_approved:
        groups.decline_action(group_id, number, by, reason)
        messages.success(request, _("Action declined."))
        return
    count = groups.approve_action(group_id, number, by, reason)
    message = ngettext("Approved for %(count)s task.", "Approved for %(count)s tasks.", count)
    messages.success(request, message % {"count": format_count(count)})


def pending_approvals(group_id: str, by: str) -> list[dict[str, Any]]:
    """Return the pending actions on the group, and whether the user may approve each of them."""
    return [
        {
            "act": approval,
            "word": ACTIONS_BY_NAME[approval.verb].label if approval.verb in ACTIONS_BY_NAME else approval.verb,
            "count": len(approval.task_ids),
            "is_own": approval.by == by,
        }
        for approval in PendingApproval.objects.filter(group_id=group_id).order_by("id")
    ]


def tasks_tab(view_model: GroupViewModel) -> dict[str, Any]:
    """Return the tasks, those that need attention first."""
    found, after = load_task_page(view_model, PAGE_SIZE)
    return {
        "rows": [_task_row(each, view_model) for each in found],
        "next": view_model.query.address(after=after) if after else "",
        "first": view_model.query.address() if view_model.query.values.get("after") else "",
        "count": len(view_model.visible_members),
        "priorities": priority_names(),
        **filter_context(view_model),
    }


def _task_row(member: GroupMember, view_model: GroupViewModel) -> dict[str, Any]:
    last = member.last
    return {
        "task": member,
        "address": standalone_task_address(member.id),
        "badge": render_badge(member.state),
        "queue": queue_address(member.queue),
        "priority": NAMES_OF_PRIORITIES.get(member.priority, ""),
        "waited": member.waited(view_model.now) if last else None,
        "ran": member.ran(view_model.now) if last and last.started_at is not None else None,
        "reason": last.reason if last and member.ended_badly and last.reason.upper() != member.state else "",
        "last": last,
    }


def audit_tab(view_model: GroupViewModel) -> dict[str, Any]:
    """Return the actions of users on the group."""
    entries = AuditEntry.objects.filter(object_type="task_group", object_id=view_model.group.pk).order_by("-at", "-id")
    return {"entries": [(entry, relative_time(entry.at), entry.facts) for entry in entries[:MAX_AUDIT_ENTRIES]]}


TABS: dict[str, PageTab[GroupViewModel]] = {
    tab.name: tab
    for tab in (
        PageTab("tasks", gettext_lazy("Tasks"), "ops/taskcluster/tasks.html", tasks_tab),
        PageTab("timeline", gettext_lazy("Timeline"), "ops/taskcluster/timeline.html", timeline_tab),
        PageTab("diagram", gettext_lazy("Diagram"), "ops/taskcluster/diagram.html", diagram_tab),
        PageTab(
            "audit", gettext_lazy("Audit log"), "ops/taskcluster/audit.html", audit_tab, "conductor.view_auditentry"
        ),
    )
}


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
        return TemplateResponse(request, "ops/taskcluster/expired.html", context, status=410)
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
        return HttpResponseRedirect(task_group_address(group_id) + view_model.query.address())
    context = confirmation_context(request, view_model)
    if context is None:
        messages.error(request, _("Missing or unknown action."))
        return HttpResponseRedirect(task_group_address(group_id) + view_model.query.address())
    context |= {
        **site.each_context(request),
        "title": _("Task group"),
        "opts": TaskGroup._meta,
        "group": view_model.group,
    }
    return TemplateResponse(request, "ops/taskcluster/confirm.html", context)


def _page_context(group: TaskGroup, request: HttpRequest) -> dict[str, Any]:
    """Return the context for the tab and the filters in the address."""
    view_model: GroupViewModel = group_view_model(group, request.GET)
    may_act = request.user.has_perm(CHANGE_PERMISSION)
    approvals = pending_approvals(group.pk, request.user.get_username())
    acts = {"may_act": may_act, "verbs": group_actions() if may_act else [], "approvals": approvals}
    return {**head_context(view_model), **tabs_context(TABS, view_model, view_model.group, request), **acts}


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


class GroupList(BoundedChangeList):
    """A page of groups with their progress, which is counted for all of them together."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        progress = groups_progress(group.pk for group in self.result_list)
        for group in self.result_list:
            group.tally = progress.get(group.pk, GroupProgress())


class GroupStateFilter(admin.SimpleListFilter):
    """Filter by unresolved or sealed groups."""

    title, parameter_name = gettext_lazy("state"), "state"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        return [("open", gettext_lazy("Unresolved")), ("sealed", gettext_lazy("Sealed"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if self.value() == "open":
            return queryset.filter(pk__in=StandaloneTask.objects.filter(ever_resolved=False).values("group_id"))
        return queryset.filter(sealed_at__isnull=False) if self.value() == "sealed" else queryset


class GroupAdmin(ReadOnlyAdmin):
    """Admin of task groups."""

    list_display = ("name", "progress", "states", "sealed", "created", "expires")
    list_display_links = None
    list_filter = (GroupStateFilter,)
    list_per_page = 40
    ordering = ("-created_at", "id")
    search_fields = ("pk",)
    search_help_text = gettext_lazy("Id of a group, or of one of its tasks")

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ChangeList]:
        return GroupList

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, search_term: str) -> tuple[QuerySet, bool]:
        term = search_term.strip().replace("\0", "")
        if not term:
            return queryset, False
        of_task = StandaloneTask.objects.filter(pk=term).values_list("group_id", flat=True)
        return queryset.filter(pk__in=[term, *of_task]), False

    def get_urls(self) -> list[URLPattern]:
        def line(route: str, view: Any, name: str) -> URLPattern:
            return path(route, self.admin_site.admin_view(view), name=name)

        return [
            line("<path:group_id>/parts/", self.group_parts_fragment, "group_parts"),
            line("<path:group_id>/do/", self.action_view, "group_do"),
            *super().get_urls(),
        ]

    def change_view(self, request: HttpRequest, object_id: str, *_: object, **__: object) -> HttpResponse:
        return group_page(self.admin_site, request, object_id)

    def group_parts_fragment(self, request: HttpRequest, group_id: str) -> HttpResponse:
        """Return the parts of the page that refresh."""
        return group_fragment(request, group_id)

    def action_view(self, request: HttpRequest, group_id: str) -> HttpResponse:
        """Preview or execute an action on tasks of the group."""
        return handle_action(self.admin_site, request, group_id)

    @admin.display(description=gettext_lazy("group"))
    def name(self, group: TaskGroup) -> SafeString:
        scheduler = _("scheduler %(name)s") % {"name": group.scheduler_id} if group.scheduler_id != "-" else ""
        link = '<a href="{}"><code class="id">{}</code></a><br><span class="muted">{}</span>'
        return format_html(link, task_group_address(group.pk), group.pk, scheduler)

    @admin.display(description=gettext_lazy("resolved"))
    def progress(self, group: Any) -> SafeString:
        done = _("%(resolved)s of %(total)s") % {
            "resolved": format_count(group.tally.resolved),
            "total": format_count(group.tally.total),
        }
        return format_html('{}<span class="number">{}</span>', progress_bar(group.tally), done)

    @admin.display(description=gettext_lazy("tasks by state"))
    def states(self, group: Any) -> SafeString | str:
        if not group.tally.total:
            return _("no tasks")
        if not group.tally.parts:
            words = ngettext("%(count)s task", "%(count)s tasks", group.tally.total)
            return words % {"count": format_count(group.tally.total)}
        here = task_group_address(group.pk)
        parts = [(here, state, render_badge(state), format_count(count)) for state, count in group.tally.parts]
        return format_html_join(" ", '<a class="plain" href="{}?state={}">{}<b>{}</b></a>', parts)

    @admin.display(description=gettext_lazy("sealed"))
    def sealed(self, group: TaskGroup) -> SafeString | str:
        return (
            relative_time(group.sealed_at)
            if group.sealed_at
            else format_html('<span class="muted">{}</span>', _("Open"))
        )

    @admin.display(description=gettext_lazy("created"))
    def created(self, group: TaskGroup) -> SafeString:
        return relative_time(group.created_at)

    @admin.display(description=gettext_lazy("expires"))
    def expires(self, group: TaskGroup) -> SafeString:
        return relative_time(group.expires_at)
