"""The list of task groups, and the page of one: its outcome, its progress by state, and its tasks.

The page can seal the group and cancel its open tasks, as Taskcluster's API does. Everything else is done with one task,
on its page, or through the API.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.errors import RequestRefused
from ...runs.models import PulseMessage
from ...settings import conf
from ...utils import clock
from ...utils.formatting import format_duration
from ...web.badges import (
    ACTIVE,
    FAILED,
    SUCCEEDED,
    WAITING,
    format_count,
    mark_names,
    relative_time,
    render_badge,
    status_tone,
)
from ...web.links import queue_address, standalone_task_address, task_group_address
from ...web.pages import (
    BoundedChangeList,
    PageQuery,
    ReadOnlyAdmin,
    moment_column,
    render_to_string,
    require_permission,
    show_refusal,
)
from ..commands import groups
from ..models import StandaloneTask, TaskGroup
from ..queries import (
    ENDED_BADLY,
    NAMES_OF_PRIORITIES,
    URGENCY,
    GroupProgress,
    first_failure,
    group_progress,
    group_times,
    groups_progress,
    open_deadlines,
    tasks_of_group,
)

PAGE_SIZE = 100
MAX_SEARCH_LENGTH = 200
POLL_INTERVAL_MS = 5_000
PARTS_TEMPLATE = "ops/taskcluster/parts.html"
VIEW_PERMISSION, CHANGE_PERMISSION = "conductor.view_taskgroup", "conductor.change_standalonetask"
WAITING_TONE = "waiting"


def progress_bar(tally: GroupProgress) -> SafeString:
    """Return the bar with the shares of all states except waiting."""
    parts, left = [], 0.0
    for tone, count in _tone_shares(tally):
        width = 100 * count / tally.total
        parts.append((tone, f"{left:.2f}%", f"{width:.2f}%"))
        left += width
    rects = format_html_join("", '<rect class="{}" x="{}" width="{}" height="8"></rect>', parts)
    label = _("%(resolved)s of %(total)s tasks are resolved") % {
        "resolved": format_count(tally.resolved),
        "total": format_count(tally.total),
    }
    return format_html(
        '<svg class="progress" width="100%" height="8" role="img" aria-label="{}">'
        '<rect width="100%" height="8"></rect>{}</svg>',
        label,
        rects,
    )


def _tone_shares(tally: GroupProgress) -> list[tuple[str, int]]:
    """Return the number of tasks per color. Without counts per state, return the number of resolved tasks."""
    if not tally.states:
        return [(SUCCEEDED, tally.resolved)] if tally.total else []
    counts: dict[str, int] = {}
    for state, count in tally.parts:
        counts[status_tone(state)] = counts.get(status_tone(state), 0) + count
    order = sorted(counts, key=lambda tone: (tone != SUCCEEDED, tone == ACTIVE))
    return [(tone, counts[tone]) for tone in order if tone != WAITING_TONE]


class GroupPageQuery(PageQuery):
    """Query parameters of a group's page."""

    parameters: ClassVar[tuple[str, ...]] = ("state", "q")

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name).replace("\0", "")[:MAX_SEARCH_LENGTH]

    @property
    def state(self) -> str:
        return self["state"] if self["state"] in URGENCY else ""


def group_revision(group_id: str, now: int) -> str:
    """Return a value that changes with the group, without reading its tasks: each transition writes a message."""
    last = PulseMessage.objects.filter(group_id=group_id).order_by("-id").values_list("id", flat=True).first()
    # If an exchange consumes the messages, only reading the tasks shows changes.
    every = POLL_INTERVAL_MS if conf.taskcluster_amqp_url else 3 * POLL_INTERVAL_MS
    return f"{last or 0}-{now // every}"


def parts_context(group: TaskGroup, values: Mapping[str, str], may_act: bool) -> dict[str, Any]:
    """Return the context of the parts that refresh, for the filter and the page of the list in the address."""
    query, tally = GroupPageQuery(values), group_progress(group.pk)
    tone, sentence = _state_sentence(group, tally)
    return {
        "group": group,
        "query": query,
        "progress_counts": tally,
        "is_over": group.sealed_at is not None and tally.is_resolved,
        "tone": tone,
        "sentence": mark_names(sentence),
        "progress": progress_bar(tally),
        "chips": _state_chips(query, tally),
        "facts": _group_facts(group),
        "may_act": may_act,
        "may_cancel": may_act and group.sealed_at is not None and not tally.is_resolved,
        **_tasks_context(group.pk, query),
    }


def _state_chips(query: GroupPageQuery, tally: GroupProgress) -> list[tuple[SafeString | str, int, str, bool]]:
    """Return the number of tasks per state, each as a filter."""
    return [
        (render_badge(state) if state else _("All"), count, query.address(state=state or None), state == query.state)
        for state, count in [("", tally.total), *tally.parts]
    ]


def _state_sentence(group: TaskGroup, tally: GroupProgress) -> tuple[str, str]:
    """Return the display group and the text of the group's state."""
    if not tally.total:
        if group.sealed_at is not None:
            return "stopped", _("The group is sealed and has no tasks.")
        return WAITING, _("No tasks yet.")
    if tally.failed:
        return FAILED, _failed_note(group.pk, tally)
    if tally.is_resolved:
        return SUCCEEDED, _completed_note(group.pk, tally)
    return ACTIVE if tally.states.get("LEASED") else WAITING, _open_note(tally)


def _failed_note(group_id: str, tally: GroupProgress) -> str:
    counts = {"count": format_count(tally.failed), "total": format_count(tally.total)}
    summary = _("%(count)s of %(total)s tasks failed.") % counts
    first = first_failure(group_id)
    if first is None:
        return summary
    return f"{summary} {_('First: `%(name)s` (%(reason)s).') % {'name': first[0], 'reason': first[1]}}"


def _completed_note(group_id: str, tally: GroupProgress) -> str:
    times = group_times(group_id)
    took = format_duration(times["ended_at"] - times["began_at"]) if times["ended_at"] is not None else "–"
    return ngettext("Completed in %(span)s.", "All %(total)s tasks completed in %(span)s.", tally.total) % {
        "total": format_count(tally.total),
        "span": took,
    }


def _open_note(tally: GroupProgress) -> str:
    return _(
        "%(resolved)s of %(total)s tasks resolved; %(out)s running, %(queued)s pending, %(blocked)s unscheduled."
    ) % {
        "resolved": format_count(tally.resolved),
        "total": format_count(tally.total),
        "out": format_count(tally.states.get("LEASED", 0)),
        "queued": format_count(tally.states.get("PENDING", 0)),
        "blocked": format_count(tally.states.get("BLOCKED", 0)),
    }


def _group_facts(group: TaskGroup) -> list[tuple[str, int]]:
    left = open_deadlines(group.pk)
    deadlines = [(_("Next deadline"), left["first"]), (_("Last deadline"), left["last"])] if left["first"] else []
    if left["first"] == left["last"]:
        deadlines = [(_("Deadline"), at) for _name, at in deadlines[:1]]
    return [*deadlines, (_("Created"), group.created_at), (_("Expires"), group.expires_at)]


def _tasks_context(group_id: str, query: GroupPageQuery) -> dict[str, Any]:
    """Return one page of the tasks that match the filter."""
    page = max(query.number("page") or 1, 1)
    start = (page - 1) * PAGE_SIZE
    rows = tasks_of_group(group_id, query.state, query["q"]).defer_payloads().with_attempts()
    found = list(rows[start : start + PAGE_SIZE + 1])
    return {
        "rows": [_task_row(each) for each in found[:PAGE_SIZE]],
        "next": query.address(page=page + 1) if len(found) > PAGE_SIZE else "",
        "previous": query.address(page=page - 1 if page > 2 else None) if page > 1 else "",
        "is_filtered": bool(query.state or query["q"]),
        "unfiltered": query.address(state=None, q=None),
    }


def _task_row(row: Any) -> dict[str, Any]:
    last = row.attempts[-1] if row.attempts else None
    repeats_state = last is None or last.reason.upper() == row.state
    return {
        "task": row,
        "name": row.task.name or row.pk,
        "address": standalone_task_address(row.pk),
        "badge": render_badge(row.state),
        "queue": queue_address(row.queue),
        "priority": NAMES_OF_PRIORITIES.get(row.priority, ""),
        "reason": last.reason if last and row.state in ENDED_BADLY and not repeats_state else "",
        "last": last,
        "begun_at": last and (last.started_at if last.started_at is not None else last.ended_at),
    }


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
    """The list of task groups, and the page of each."""

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
        parts = self.admin_site.admin_view(self.parts_view)
        return [path("<path:group_id>/parts/", parts, name="group_parts"), *super().get_urls()]

    def change_view(self, request: HttpRequest, object_id: str, *_args: object, **_kwargs: object) -> HttpResponse:
        """Render the page of a group, or seal the group or cancel its tasks."""
        group = _find_group(request, object_id)
        if request.method == "POST":
            return _handle_action(request, group)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Task group"),
            "opts": TaskGroup._meta,
            **parts_context(group, request.GET, request.user.has_perm(CHANGE_PERMISSION)),
        }
        context |= {
            "parts": render_to_string(PARTS_TEMPLATE, context, request),
            "live_revision": group_revision(group.pk, clock.now()),
        }
        return TemplateResponse(request, "admin/conductor/taskgroup/page.html", context)

    def parts_view(self, request: HttpRequest, group_id: str) -> HttpResponse:
        """Return the parts of the page that refresh, or 204 if nothing has changed."""
        group = _find_group(request, group_id)
        revision = group_revision(group.pk, clock.now())
        if request.GET.get("rev") == revision:
            return HttpResponse(status=204)
        context = parts_context(group, request.GET, request.user.has_perm(CHANGE_PERMISSION))
        html = render_to_string(PARTS_TEMPLATE, context, request)
        return HttpResponse(html, headers={"X-Revision": revision, "Cache-Control": "no-store"})

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
            relative_time(group.sealed_at) if group.sealed_at else format_html('<span class="muted">{}</span>', _("No"))
        )

    created = moment_column("created_at", gettext_lazy("created"))
    expires = moment_column("expires_at", gettext_lazy("expires"))


def _find_group(request: HttpRequest, group_id: str) -> TaskGroup:
    require_permission(request, VIEW_PERMISSION)
    group = TaskGroup.objects.filter(pk=group_id.replace("\0", "")).first()
    if group is None:
        raise Http404(_("No such task group: %(id)s. It may have expired and been deleted.") % {"id": group_id[:64]})
    return group


def _handle_action(request: HttpRequest, group: TaskGroup) -> HttpResponse:
    require_permission(request, CHANGE_PERMISSION)
    by = request.user.get_username()
    try:
        if request.POST.get("do") == "seal":
            groups.seal_group(group.pk, by, request.POST.get("reason", "").strip()[:500])
            messages.success(request, _("Group sealed. It accepts no more tasks."))
        elif request.POST.get("do") == "cancel":
            count = len(groups.cancel_group_as_operator(group.pk, by))
            words = ngettext("%(count)s task is canceled.", "%(count)s tasks are canceled.", count)
            messages.success(request, words % {"count": format_count(count)})
        else:
            messages.error(request, _("Missing or unknown action."))
    except RequestRefused as refused:
        show_refusal(request, refused)
    return HttpResponseRedirect(task_group_address(group.pk))
