"""Stand-alone tasks, which belong to no run: found by id, group, queue or state; and the page of one."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ...core.errors import Refused
from ...core.states import TASK
from ...engine.groups.acts import act
from ...insight.solo import NAMES_OF_PRIORITIES
from ...insight.solo_queues import dependencies_of, notices_of
from ...models import Attempt, Solo
from ..json_tree import tree
from ..marks import ago, badge
from ..read_only import ReadOnlyAdmin
from ..refusals import require, tell
from ..watching.queues import queue_address

PERMISSION = "conductor.change_solo"
DONE = {"schedule": "It may be handed out now.", "rerun": "It is tried once more.", "cancel": "It is canceled."}


class StateFilter(admin.SimpleListFilter):
    """In which state a task is."""

    title, parameter_name = "state", "state"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [("open", "Open"), ("blocked", "Waiting for others"), ("over", "Resolved")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        chosen = {"open": sorted(TASK.open), "blocked": ["BLOCKED"], "over": sorted(TASK.final)}.get(self.value() or "")
        return queryset.filter(task__status__in=chosen) if chosen else queryset


class SoloAdmin(ReadOnlyAdmin):
    """Each stand-alone task."""

    list_display = ("state", "name", "queue_link", "priority_name", "created", "deadline")
    list_display_links = None
    list_filter = (StateFilter,)
    list_select_related = ("task",)
    # The newest live longest, as a rule, and that has an index.
    ordering = ("-expires_at",)
    search_fields = ("pk",)
    search_help_text = "The id of a task or of its group, or the name of a queue"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Solo]:
        return Solo.objects.light()

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, search_term: str) -> tuple[QuerySet, bool]:
        term = search_term.strip().replace("\0", "")
        if not term:
            return queryset, False
        if "/" in term:
            return queryset.filter(task__attempts__in=_waiting_or_out(term)).distinct(), False
        return queryset.filter(pk=term) | queryset.filter(group_id=term), False

    def change_view(self, request: HttpRequest, object_id: str, *_: object, **__: object) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return self._act(request, object_id)
        solo = Solo.objects.with_attempts().filter(pk=object_id.replace("\0", "")).first()
        if solo is None:
            raise Http404(f"There is no task {object_id}.")
        return TemplateResponse(request, "admin/conductor/solo/page.html", self._shown(request, solo))

    def _shown(self, request: HttpRequest, solo: Solo) -> dict[str, Any]:
        return {
            **self.admin_site.each_context(request),
            "title": solo.task.name or solo.pk,
            "opts": Solo._meta,
            "solo": solo,
            "badge": badge(solo.task.status),
            "priority": NAMES_OF_PRIORITIES[solo.priority],
            "queue": queue_address(solo.queue),
            "runs": [(attempt, badge(attempt.status)) for attempt in solo.attempts],
            "dependencies": [(edge, badge(status) if status else "") for edge, status in dependencies_of(solo.pk)],
            "notices": notices_of(solo.pk),
            "definition": tree(solo.definition),
            "is_open": solo.task.status in TASK.open,
            "is_blocked": solo.task.status == "BLOCKED",
            "may_act": request.user.has_perm(PERMISSION),
        }

    def _act(self, request: HttpRequest, task_id: str) -> HttpResponse:
        require(request, PERMISSION)
        verb, reason = request.POST.get("do", ""), request.POST.get("reason", "").strip()
        try:
            act(verb, task_id, request.user.get_username(), reason)
            messages.success(request, DONE[verb])
        except Refused as refused:
            tell(request, refused)
        return HttpResponseRedirect(solo_address(task_id))

    @admin.display(description="status")
    def state(self, solo: Solo) -> SafeString:
        return badge(solo.task.status)

    @admin.display(description="task")
    def name(self, solo: Solo) -> SafeString:
        link = '<a href="{}"><strong>{}</strong></a><br><code class="id">{}</code>'
        return format_html(link, solo_address(solo.pk), solo.task.name or "without a name", solo.pk)

    @admin.display(description="queue")
    def queue_link(self, solo: Solo) -> SafeString:
        return format_html('<a href="{}">{}</a>', queue_address(solo.queue), solo.queue)

    @admin.display(description="priority")
    def priority_name(self, solo: Solo) -> str:
        return NAMES_OF_PRIORITIES[solo.priority]

    @admin.display(description="created")
    def created(self, solo: Solo) -> SafeString:
        return ago(solo.task.created_at)

    @admin.display(description="deadline")
    def deadline(self, solo: Solo) -> SafeString:
        return ago(solo.deadline_at)


def solo_address(task_id: str) -> str:
    """The page of a stand-alone task."""
    return reverse("admin:conductor_solo_change", args=[task_id])


def _waiting_or_out(queue: str) -> QuerySet:
    return Attempt.objects.open().filter(queue=queue, run__isnull=True)
