"""The list of runs: a changelist with the filters of the bar, keyset pagination, and tabs of views."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.visibility import may, visible
from ...alerts.queries import visible_views
from ...bulk import selections
from ...bulk.queries import ACTION_LABELS
from ...core.errors import Invalid, RequestRefused
from ...core.failure_grouping import informative_line
from ...db import keyset_pages
from ...db.keyset_pages import SortColumn
from ...definitions.durations import typical_run_durations
from ...explanations.cause import current_steps, failure_reasons
from ...tasks.gates import RUN_SLOT, GateFacts
from ...utils import clock
from ...utils.formatting import LazyText
from ...web.badges import exact_time, format_lower_bound, render_badge, running_time
from ...web.links import render_run_link
from ...web.pages import GrantedRowsAdmin, ServerAwareChangeList, fragment_response, moment_column, show_refusal
from ...web.preferences import save_preference, saved_preferences
from ..models import Run, RunQuerySet
from ..queries.recent import annotate_key_inputs, run_key, run_keys
from ..search import RUNS
from ..search.results import query_for_value
from ..timeline.queries import slow_runs
from . import run as run_page
from .actions import RunAction, change_labels, run_actions
from .debugger import handle_debugger
from .filters import (
    FILTER_FIELDS,
    active_filters,
    address_with,
    clean_text,
    coverage_notes,
    export_runs,
    filter_bar,
    list_parameters,
    parse_selection,
    parse_statuses,
    selection_query,
)

MAX_SAVED = 6
"""Saved views that are tabs. The page of the views has all."""
FAILED_RECENTLY = {"failed": "24h"}


@dataclass(frozen=True, slots=True)
class ViewTab:
    """One tab: its label, its address, and its query parameters."""

    label: str
    address: str
    is_current: bool
    query: dict[str, str]


def view_tabs(request: HttpRequest) -> list[ViewTab]:
    """Return the tabs for the filters of an address. Runs one query."""
    current = _canonical(request.GET)
    return [_build_tab(label, query, current) for label, query in _tab_queries(request)]


def counted_tabs(request: HttpRequest) -> list[tuple[ViewTab, str]]:
    """Return the tabs with their numbers of runs, each counted up to a limit."""
    return [(tab, _count_text(tab)) for tab in view_tabs(request)]


def is_unsaved(request: HttpRequest, tabs: list[ViewTab]) -> bool:
    """Return True if the address has filters that no tab has."""
    return bool(_canonical(request.GET)) and not any(tab.is_current for tab in tabs)


def _tab_queries(request: HttpRequest) -> Iterator[tuple[str, dict[str, str]]]:
    yield _("All"), {}
    yield _("Running"), {"status": "RUNNING"}
    yield _("Failed in 24 h"), FAILED_RECENTLY
    yield _("My starts"), {"started_by": request.user.get_username()}
    for view in visible_views(request)[:MAX_SAVED]:
        yield view.name, selection_query(view.selection)


def _build_tab(label: str, query: dict[str, str], current: dict[str, Any]) -> ViewTab:
    address = reverse("admin:conductor_run_changelist", query=query or None)
    return ViewTab(label, address, _canonical(_to_parameters(query)) == current, query)


def _canonical(query: QueryDict) -> dict[str, Any]:
    """Return the filters of an address in a form that can be compared."""
    found: dict[str, Any] = {
        field.name: text for field in FILTER_FIELDS if (text := clean_text(query.get(field.name, "")))
    }
    statuses = sorted(parse_statuses(query))
    if statuses:
        found["status"] = statuses
    return found | _preset(query)


def _preset(query: QueryDict) -> dict[str, Any]:
    return {name: preset for name in ("started", "failed") if (preset := query.get(name))}


def _to_parameters(query: dict[str, str]) -> QueryDict:
    return QueryDict(urlencode(query))


def _count_text(tab: ViewTab) -> str:
    """Return the number of runs. A view with an invalid selection has none and does not affect the others.

    The tab of recent failures states how many of its runs are still failed.
    """
    try:
        found = selections.selected_runs(parse_selection(_to_parameters(tab.query)))
    except Invalid:
        return ""
    count, is_more = keyset_pages.count_rows(found)
    text = format_lower_bound(count, is_more)
    if tab.query != FAILED_RECENTLY or not count or is_more:
        return text
    failed, _is_more = keyset_pages.count_rows(found.filter(status__in=selections.UNSUCCESSFUL_STATUSES))
    return text if failed == count else _("%(count)s, %(failed)s still failed") % {"count": text, "failed": failed}


SORT_COLUMNS = {
    "": SortColumn("created_at"),
    "oldest": SortColumn("created_at", descends=False),
    "ended": SortColumn("ended_at"),
}
SORT_LABELS = {
    "": gettext_lazy("Newest"),
    "oldest": gettext_lazy("Oldest"),
    "ended": gettext_lazy("Last ended"),
}


def matching_runs(request: HttpRequest) -> QuerySet[Run]:
    """Return the runs that match the address."""
    return runs_with_coverage(request)[0]


def runs_with_coverage(request: HttpRequest) -> tuple[RunQuerySet, list[selections.ScanNote]]:
    """Return the runs that match the address, and notes about filters that searched only the newest runs."""
    rows, notes = selections.select_with_notes(
        parse_selection(request.GET), by_start=requested_sort(request).column == "created_at"
    )
    return rows.defer("domains"), notes


def requested_sort(request: HttpRequest) -> SortColumn:
    return SORT_COLUMNS.get(request.GET.get("sort", ""), SORT_COLUMNS[""])


class RunList(ServerAwareChangeList):
    """Changelist with Django's actions and templates, and its own filters, order and pagination."""

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        return {}

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Run]:
        self.query_parameters = request.GET
        self.filter_specs, self.has_filters, self.has_active_filters = [], False, bool(self.filter_chips)
        self.clear_all_filters_qs, self.sort = "?", requested_sort(request)
        self.notes: list[selections.ScanNote] = []
        self.is_refused = False
        try:
            rows, self.notes = runs_with_coverage(request)
            self.counted = selections.countable_runs(parse_selection(request.GET), rows)
            return annotate_key_inputs(rows)
        except Invalid as refused:
            messages.error(request, refused.message)
            self.is_refused = True
            self.counted = Run.objects.none()
            return self.counted

    def get_results(self, request: HttpRequest) -> None:
        """Load one page of rows, a count up to a limit, and the facts that the rows show."""
        after, before = (request.GET.get(name, "")[:80] for name in ("after", "before"))
        self.current_page = keyset_pages.keyset_page(self.queryset, self.sort, after, before)
        self.result_list, (self.result_count, self.is_capped) = (
            self.current_page.rows,
            keyset_pages.count_rows(self.counted, self.current_page),
        )
        self.show_full_result_count, self.show_admin_actions = False, bool(self.current_page.rows)
        self.full_result_count, self.can_show_all, self.multi_page = self.result_count, False, True
        self.paginator = self.model_admin.get_paginator(request, self.queryset.order_by(*self.sort.order()), 50)
        self._add_facts(is_parent_listed="parent" in self.model_admin.get_list_display(request))

    def _add_facts(self, is_parent_listed: bool) -> None:
        """Load what the rows show beside the columns of their runs, for all rows together."""
        runs = self.result_list
        failed, usual = failure_reasons(runs), typical_run_durations(runs)
        steps, slow = current_steps(runs, clock.now()), slow_runs(runs, usual, clock.now())
        parents = run_keys(run.parent_id for run in runs) if is_parent_listed else {}
        for run in runs:
            run.failure, run.usual = failed.get(run.pk), usual.get((run.name, run.version))
            run.slow_ms = slow.get(run.pk)
            run.current_step, run.parent_keys = steps.get(run.pk), parents

    @property
    def search_hint(self) -> SafeString | str:
        """Return another search for a list without results: for the text as a value of the inputs."""
        query = self.query_parameters.get("q", "").strip()
        if not query or RUNS.is_query(query):
            return ""
        other = address_with(self.query_parameters, q=query_for_value(query))
        return format_html('<a href="{}">{}</a>', other, _("Search inputs for “%(value)s”") % {"value": query[:60]})

    @property
    def filter_chips(self) -> list[Any]:
        return active_filters(self.query_parameters) if hasattr(self, "query_parameters") else []

    def get_extra_context(self) -> dict[str, Any]:
        """Return the context around the rows: filter bar, chips, and links to other pages and orders."""
        current_page, query_parameters = self.current_page, self.query_parameters
        # Runs with a future start time come before all runs that have started.
        started = [run.created_at for run in self.result_list if not run.begins_later(clock.now())]
        first = started[0] if started and not query_parameters.get("after") else 0
        return {
            "bar": filter_bar(query_parameters),
            "notes": coverage_notes(self.notes, query_parameters),
            "newer": address_with(query_parameters, before=current_page.before) if current_page.before else "",
            "older": address_with(query_parameters, after=current_page.after) if current_page.after else "",
            "first": address_with(query_parameters) if current_page.before else "",
            "sort": SORT_LABELS.get(query_parameters.get("sort", ""), SORT_LABELS[""]),
            "sorts": [
                (address_with(query_parameters, sort=name), word, name == query_parameters.get("sort", ""))
                for name, word in SORT_LABELS.items()
            ],
            "export_query": address_with(query_parameters)[1:],
            "news_query": address_with(query_parameters, since=str(first))[1:]
            if first and self.sort == SORT_COLUMNS[""]
            else "",
            "count": self.result_count,
            "is_capped": self.is_capped,
        }


MAX_SELECTED = 500
"""Maximum number of runs that are selected one by one. The plan of all matching runs has no such limit."""
MAIN_BUTTONS = {
    "retry": "do-retry",
    "pause": "do-pause",
    "resume": "do-resume",
    "terminate": "do-terminate",
    "label": "",
}
"""The actions that the bar of a selection shows as buttons, with their icons. The others are in its menu."""


def selection_buttons(allowed: Collection[str]) -> dict[str, list[tuple[str, str, str]]]:
    """Return name, label and icon of the actions on a selection: those shown as buttons, and those in the menu."""
    found = {name: (name, str(ACTION_LABELS[name]), MAIN_BUTTONS.get(name, "")) for name in ACTION_LABELS}
    main = [found[name] for name in MAIN_BUTTONS if name in allowed]
    return {"main": main, "more": [found[name] for name in allowed if name in found and name not in MAIN_BUTTONS]}


def _on_selection(action: RunAction) -> LazyText:
    return format_lazy(gettext_lazy("{action} the selected runs"), action=action.label)


def make_planned_action(name: str, description: str | LazyText) -> Callable[..., HttpResponseRedirect]:
    """Return an action for Django's changelist that redirects to the plan of a bulk operation."""

    @admin.action(description=description, permissions=["operate"])
    def act(model_admin: admin.ModelAdmin, request: HttpRequest, runs: QuerySet[Run]) -> HttpResponseRedirect:
        try:
            if request.POST.get("select_across") == "1":
                selection = list_parameters(request.GET)
            else:
                ids = runs.order_by("-created_at").values_list("pk", flat=True)[:MAX_SELECTED]
                selection = {"ids": ",".join(ids)}
        except RequestRefused as refused:
            show_refusal(request, refused)
            return HttpResponseRedirect(reverse("admin:conductor_run_changelist"))
        return HttpResponseRedirect(reverse("admin:bulk_plan", query={**selection, "action": name}))

    act.__name__ = name
    return act


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
"""The columns that the list can show, in this order. `RunAdmin` has a method or attribute for each, with its header."""
FIXED_COLUMNS = ("state", "run", "workflow")
DEFAULT_COLUMNS = (*FIXED_COLUMNS, "started", "duration", "error")
COLUMNS_PREFERENCE = "run_columns"
MAX_NEW_RUNS = 100


class RunAdmin(GrantedRowsAdmin):
    """Admin of runs: search, actions on selected runs, and the addresses of a run's pages."""

    actions: tuple[Any, ...] = (
        *(make_planned_action(action.name, _on_selection(action)) for action in run_actions()),
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
        return visible(Run.objects.defer_payloads().defer("domains"))

    def get_list_display(self, request: HttpRequest) -> Any:
        chosen = saved_preferences(request).get(COLUMNS_PREFERENCE, DEFAULT_COLUMNS)
        return [name for name in COLUMN_LABELS if name in chosen or name in FIXED_COLUMNS]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        response = super().changelist_view(request, extra_context)
        if hasattr(response, "context_data") and response.context_data and "cl" in response.context_data:
            shown = self.get_list_display(request)
            response.context_data |= response.context_data["cl"].get_extra_context()
            response.context_data["columns"] = [
                (n, word, n in shown) for n, word in COLUMN_LABELS.items() if n not in FIXED_COLUMNS
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

    def export(self, request: HttpRequest, format: str) -> HttpResponseBase:
        """Download all runs that match the filters."""
        self._require_access(request)
        try:
            return export_runs(matching_runs(request), requested_sort(request), format)
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
        """Return True if the user may run actions on some runs."""
        return any(may(request.user, action.permission) for action in run_actions())

    def get_urls(self) -> list[URLPattern]:
        return [
            path("columns/", self.admin_site.admin_view(self.save_columns), name="run_columns"),
            path("export.<str:format>", self.admin_site.admin_view(self.export), name="run_export"),
            path("news/", self.admin_site.admin_view(self.new_runs_fragment), name="run_news"),
            path("views/", self.admin_site.admin_view(self.view_tabs_fragment), name="run_views"),
            path("<path:run_id>/bundle.json", self.admin_site.admin_view(run_page.export_run_file), name="run_bundle"),
            path("<path:run_id>/labels/", self.admin_site.admin_view(change_labels), name="run_labels"),
            path("<path:run_id>/parts/", self.admin_site.admin_view(self.run_parts_fragment), name="run_parts"),
            path("<path:run_id>/raw/<str:field>/", self.admin_site.admin_view(self.raw), name="run_raw"),
            path("<path:run_id>/debugger/", self.admin_site.admin_view(handle_debugger), name="run_debug"),
            path("<path:run_id>/do/<str:action>/", self.admin_site.admin_view(self.act), name="run_act"),
            *super().get_urls(),
        ]

    def change_view(self, request: HttpRequest, object_id: str, *_: object, **__: object) -> HttpResponse:
        return run_page.run_page(self, request, object_id)

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
        if run.failed_before_at is None or run.status in selections.UNSUCCESSFUL_STATUSES:
            return render_badge(run.status)
        title = _("It failed, and was retried, rerun or restarted.")
        return format_html('{} <span class="muted" title="{}">{}</span>', render_badge(run.status), title, _("retried"))

    @admin.display(description=gettext_lazy("run"))
    def run(self, run: Run) -> SafeString:
        return render_run_link(run.pk, {run.pk: run_key(run)})

    @admin.display(description=gettext_lazy("workflow"))
    def workflow(self, run: Run) -> SafeString:
        return format_html('{} <span class="version">v{}</span>', run.name, run.version)

    @admin.display(description=gettext_lazy("correlation id"), empty_value="–")
    def correlation(self, run: Run) -> str | None:
        return run.correlation_id or None

    started = moment_column("created_at", gettext_lazy("started"))
    ended = moment_column("ended_at", gettext_lazy("ended"))

    @admin.display(description=gettext_lazy("duration"))
    def duration(self, run: Run) -> SafeString | str:
        if run.begins_later(clock.now()):
            return ""
        took, slow = running_time(run.created_at + run.idle_ms, run.ended_at), run.slow_ms
        if run.usual is None:
            return format_html(
                '<span title="{}">{}</span>',
                _("ended %(time)s") % {"time": exact_time(run.ended_at)} if run.ended_at else "",
                took,
            )
        return format_html(
            '<span{} title="{}">{}{}</span>',
            SafeString(' class="slow"') if slow else "",
            run.usual.sentence,
            took,
            format_html(' <span class="times">{}</span>', _format_factor(slow, run.usual.p50)) if slow else "",
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
            return RUN_SLOT.brief(GateFacts(clock.now(), 0, is_run_held=True))
        if run.current_step is not None:
            since = format_html(" · {}", running_time(run.current_step.since)) if run.current_step.since else ""
            return format_html(
                '<span class="step"><code>{}</code> {}{}</span>', run.current_step.task, run.current_step.words, since
            )
        if run.failure is None:
            return informative_line(run.reason, 200)
        return format_html("<code>{}</code> {}", *run.failure)


def _format_factor(took: int, usual: int) -> str:
    """Return the ratio to the typical duration."""
    times = took / max(usual, 1)
    return f"{times:.1f} ×" if times < 10 else f"{times:.0f} ×" if times < 100 else "> 99 ×"


def _query_without_page(request: HttpRequest) -> str:
    kept = request.GET.copy()
    for name in ("since", "rev", "before", "after"):
        kept.pop(name, None)
    return kept.urlencode()
