"""The list of runs."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...core.errors import Invalid
from ...core.informative_lines import informative_line
from ...insight.runs.current_steps import CurrentStep
from ...insight.runs.run_keys import run_key
from ...models import Run
from ..badges import exact_time, relative_time, render_badge, running_time
from ..bulk.selected_runs import make_bulk_action, make_planned_action, selection_buttons
from ..choices import save_preference, saved_preferences
from ..fragments import fragment_response
from ..read_only import ReadOnlyAdmin
from ..run_links import render_run_link
from . import run_page
from .run_actions import run_actions
from .run_bundle import export_run_file, inspect_bundle
from .run_changelist import RunList, matching_runs, requested_sort
from .run_debugger import handle_debugger
from .run_export import export_runs
from .run_labels import change_labels
from .view_tabs import counted_tabs, is_unsaved, view_tabs

COLUMN_LABELS = {
    "state": gettext_lazy("Status"),
    "run": gettext_lazy("Run"),
    "workflow": gettext_lazy("Workflow"),
    "correlation": gettext_lazy("Correlation id"),
    "started": gettext_lazy("Started"),
    "ended": gettext_lazy("Ended"),
    "duration": gettext_lazy("Duration"),
    "started_by": gettext_lazy("Started by"),
    "priority_text": gettext_lazy("Priority"),
    "key": gettext_lazy("Idempotency key"),
    "parent": gettext_lazy("Parent"),
    "error": gettext_lazy("Current step · Error"),
}
"""The columns that the list can show, in this order."""
FIXED_COLUMNS = ("state", "run", "workflow")
DEFAULT_COLUMNS = (*FIXED_COLUMNS, "started", "duration", "error")
COLUMNS_PREFERENCE = "run_columns"
MAX_NEW_RUNS = 100


class RunAdmin(ReadOnlyAdmin):
    """Admin of runs: search, actions on selected runs, and the addresses of a run's pages."""

    actions = (
        *(make_bulk_action(action) for action in run_actions()),
        make_planned_action("label", gettext_lazy("Add labels to the selected runs")),
        make_planned_action("unlabel", gettext_lazy("Remove labels from the selected runs")),
    )
    actions_on_top, actions_on_bottom = False, True
    list_display_links = None
    list_display = DEFAULT_COLUMNS
    ordering = ("-created_at", "id")

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ChangeList]:
        return RunList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        return Run.objects.defer_payloads().defer("domains")

    def get_list_display(self, request: HttpRequest) -> list[str]:
        chosen = saved_preferences(request).get(COLUMNS_PREFERENCE, DEFAULT_COLUMNS)
        return [name for name in COLUMN_LABELS if name in chosen or name in FIXED_COLUMNS]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        response = super().changelist_view(request, extra_context)
        if hasattr(response, "context_data") and response.context_data and "cl" in response.context_data:
            visible = self.get_list_display(request)
            response.context_data |= response.context_data["cl"].get_extra_context()
            response.context_data["columns"] = [
                (n, word, n in visible) for n, word in COLUMN_LABELS.items() if n not in FIXED_COLUMNS
            ]
            tabs = view_tabs(request)
            response.context_data["view_tabs"] = [(tab, None) for tab in tabs]
            response.context_data["is_unsaved"] = is_unsaved(request, tabs)
            response.context_data["selection_buttons"] = selection_buttons(self.get_actions(request))
        return response

    def save_columns(self, request: HttpRequest) -> HttpResponse:
        """Save the columns that the user wants to see."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        self._require_access(request)
        save_preference(
            request, **{COLUMNS_PREFERENCE: [name for name in COLUMN_LABELS if name in request.POST.getlist("column")]}
        )
        query = request.POST.get("query", "").partition("#")[0]
        return HttpResponseRedirect(reverse("admin:conductor_run_changelist") + (f"?{query}" if query else ""))

    def export(self, request: HttpRequest, format: str) -> HttpResponse:
        """Download all runs that match the filters."""
        self._require_access(request)
        try:
            return export_runs(request, matching_runs(request), requested_sort(request), format)
        except Invalid as refused:
            messages.error(request, refused.message)
            return HttpResponseRedirect(reverse("admin:conductor_run_changelist"))

    def new_runs_fragment(self, request: HttpRequest) -> HttpResponse:
        """Return the number of matching runs that started after the list was loaded."""
        self._require_access(request)
        since = request.GET.get("since", "")
        try:
            now = clock.now()
            newer = matching_runs(request).filter(
                created_at__gt=int(since) if since.isdecimal() else now, created_at__lte=now
            )
            count = newer.order_by().values("pk")[:MAX_NEW_RUNS].count()
        except (Invalid, OverflowError):
            count = 0
        return fragment_response(
            request,
            "ops/runs/new_runs.html",
            {"news": count, "most": MAX_NEW_RUNS, "query": _query_without_page(request)},
        )

    def view_tabs_fragment(self, request: HttpRequest) -> HttpResponse:
        """Return the tabs of the views with their numbers of runs."""
        self._require_access(request)
        return fragment_response(request, "ops/runs/view_tabs.html", {"view_tabs": counted_tabs(request)})

    def _require_access(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied("conductor.view_run")

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Return True if the user may run actions on a selection."""
        return any(request.user.has_perm(action.permission) for action in run_actions())

    def get_urls(self) -> list[URLPattern]:
        return [
            path("columns/", self.admin_site.admin_view(self.save_columns), name="run_columns"),
            path("export.<str:format>", self.admin_site.admin_view(self.export), name="run_export"),
            path("bundle/", self.admin_site.admin_view(self.inspect_bundle_view), name="run_bundle_opened"),
            path("news/", self.admin_site.admin_view(self.new_runs_fragment), name="run_news"),
            path("views/", self.admin_site.admin_view(self.view_tabs_fragment), name="run_views"),
            path("<path:run_id>/bundle.json", self.admin_site.admin_view(export_run_file), name="run_bundle"),
            path("<path:run_id>/labels/", self.admin_site.admin_view(change_labels), name="run_labels"),
            path("<path:run_id>/parts/", self.admin_site.admin_view(self.run_parts_fragment), name="run_parts"),
            path("<path:run_id>/raw/<str:field>/", self.admin_site.admin_view(self.raw), name="run_raw"),
            path("<path:run_id>/debugger/", self.admin_site.admin_view(handle_debugger), name="run_debug"),
            path("<path:run_id>/do/<str:action>/", self.admin_site.admin_view(self.act), name="run_act"),
            *super().get_urls(),
        ]

    def change_view(self, request: HttpRequest, object_id: str, *_: object, **__: object) -> HttpResponse:
        return run_page.run_page(self, request, object_id)

    def inspect_bundle_view(self, request: HttpRequest) -> HttpResponse:
        """Show the content of a bundle."""
        return inspect_bundle(self, request)

    def run_parts_fragment(self, request: HttpRequest, run_id: str) -> HttpResponse:
        """Return the parts of a run's page that refresh, or 204 if they have not changed."""
        return run_page.run_fragment(self, request, run_id)

    def raw(self, request: HttpRequest, run_id: str, field: str) -> HttpResponse:
        """Download one document of the run as JSON."""
        return run_page.raw_document(self, request, run_id, field)

    def act(self, request: HttpRequest, run_id: str, action: str) -> HttpResponse:
        """Handle a button of the page."""
        return run_page.handle_action(request, run_id, action)

    @admin.display(description=gettext_lazy("status"))
    def state(self, run: Run) -> SafeString:
        return render_badge(run.status)

    @admin.display(description=gettext_lazy("run"))
    def run(self, run: Run) -> SafeString:
        return render_run_link(run.pk, {run.pk: run_key(run)})

    @admin.display(description=gettext_lazy("workflow"))
    def workflow(self, run: Run) -> SafeString:
        return format_html('{} <span class="version">v{}</span>', run.name, run.version)

    @admin.display(description=gettext_lazy("correlation id"), empty_value="–")
    def correlation(self, run: Run) -> str | None:
        return run.correlation_id or None

    @admin.display(description=gettext_lazy("started"))
    def started(self, run: Run) -> SafeString:
        return relative_time(run.created_at)

    @admin.display(description=gettext_lazy("ended"))
    def ended(self, run: Run) -> SafeString:
        return relative_time(run.ended_at)

    @admin.display(description=gettext_lazy("duration"))
    def duration(self, run: Run) -> SafeString | str:
        if run.begins_later(clock.now()):
            return ""
        took = running_time(run.created_at, run.ended_at)
        end = clock.now() if run.ended_at is None else run.ended_at
        if run.usual is None:
            return format_html(
                '<span title="{}">{}</span>',
                _("ended %(time)s") % {"time": exact_time(run.ended_at)} if run.ended_at else "",
                took,
            )
        slow = run.usual.is_slow(end - run.created_at)
        return format_html(
            '<span{} title="{}">{}{}</span>',
            SafeString(' class="slow"') if slow else "",
            run.usual.sentence,
            took,
            format_html(' <span class="times">{}×</span>', _format_factor(end - run.created_at, run.usual.p50))
            if slow
            else "",
        )

    @admin.display(description=gettext_lazy("started by"))
    def started_by(self, run: Run) -> str:
        return run.started_by

    @admin.display(description=gettext_lazy("priority"))
    def priority_text(self, run: Run) -> str:
        return str(run.priority or "")

    @admin.display(description=gettext_lazy("idempotency key"))
    def key(self, run: Run) -> str:
        return run.idempotency_key or ""

    @admin.display(description=gettext_lazy("parent"))
    def parent(self, run: Run) -> SafeString | str:
        return render_run_link(run.parent_id, run.parent_keys) if run.parent_id else ""

    @admin.display(description=gettext_lazy("current step · error"), empty_value="")
    def error(self, run: Run) -> SafeString | str:
        if run.begins_later(clock.now()):
            return _("starts at %(time)s") % {"time": exact_time(run.created_at)}
        if run.is_held:
            return _("waiting: workflow concurrency limit reached")
        if run.current_step is not None:
            return _render_step(run.current_step)
        if run.failure is None:
            return informative_line(run.reason, 200)
        return format_html("<code>{}</code> {}", *run.failure)


def _render_step(step: CurrentStep) -> SafeString:
    """Return the task, what it waits for, and since when."""
    since = format_html(" · {}", running_time(step.since)) if step.since else ""
    return format_html('<span class="step"><code>{}</code> {}{}</span>', step.task, step.words, since)


def _format_factor(took: int, usual: int) -> str:
    """Return the ratio to the typical duration."""
    times = took / max(usual, 1)
    return f"{times:.1f}" if times < 10 else f"{times:.0f}" if times < 100 else "> 99 "


def _query_without_page(request: HttpRequest) -> str:
    kept = request.GET.copy()
    for name in ("since", "rev", "before", "after"):
        kept.pop(name, None)
    return kept.urlencode()
