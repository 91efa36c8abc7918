"""The list of runs as Django's changelist, with the filters of the bar and keyset pagination."""

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...core.errors import Invalid
from ...insight import keyset_pages
from ...insight.bulk import selections
from ...insight.definitions.duration_baselines import typical_run_durations
from ...insight.keyset_pages import SortColumn
from ...insight.runs.cause import failure_reasons
from ...insight.runs.current_steps import current_steps
from ...insight.runs.run_keys import annotate_key_inputs, run_keys
from ...insight.runs.search import RUNS
from ...insight.runs.search.value_search import query_for_value, suggest_query
from ...models import Run
from ..read_only import ServerAwareChangeList
from .run_filters import active_filters, address_with, filter_bar, parse_selection
from .search_coverage import coverage_notes

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
    """Return the runs that match the address.

    Raises:
        Invalid: when a filter is invalid.
    """
    return runs_with_coverage(request)[0]


def runs_with_coverage(request: HttpRequest) -> tuple[QuerySet[Run], list[selections.ScanNote]]:
    """Return the runs that match the address, and notes about filters that searched only the newest runs.

    Raises:
        Invalid: when a filter is invalid.
    """
    rows, notes = selections.select_with_notes(
        parse_selection(request.GET), by_start=requested_sort(request).column == "created_at"
    )
    return rows.defer("domains"), notes


def requested_sort(request: HttpRequest) -> SortColumn:
    """Return the order that the address requests."""
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
        try:
            rows, self.notes = runs_with_coverage(request)
            self.counted = selections.countable_runs(parse_selection(request.GET), rows)
            return annotate_key_inputs(rows)
        except Invalid as refused:
            messages.error(request, refused.message)
            self.counted = Run.objects.none()
            return self.counted

    def get_results(self, request: HttpRequest) -> None:
        """Load one page of rows, a count up to a limit, and the failures and typical durations of the rows."""
        place = {name: request.GET.get(name, "")[:80] for name in ("after", "before")}
        self.current_page = keyset_pages.keyset_page(self.queryset, self.sort, **place)
        self.result_list, (self.result_count, self.is_capped) = (
            self.current_page.rows,
            keyset_pages.count_rows(self.counted, self.current_page),
        )
        self.show_full_result_count, self.show_admin_actions = False, bool(self.current_page.rows)
        self.full_result_count, self.can_show_all, self.multi_page = self.result_count, False, True
        self.paginator = self.model_admin.get_paginator(request, self.queryset.order_by(*self.sort.order()), 50)
        self._add_facts(is_parent_listed="parent" in self.model_admin.get_list_display(request))

    def _add_facts(self, is_parent_listed: bool) -> None:
        """Load what the rows show beside the columns of their runs, each in one query for all rows."""
        runs = self.result_list
        failed, usual = failure_reasons(runs), typical_run_durations(runs)
        steps = current_steps(runs, clock.now())
        parents = run_keys(run.parent_id for run in runs) if is_parent_listed else {}
        for run in runs:
            run.failure, run.usual = failed.get(run.pk), usual.get((run.name, run.version))
            run.current_step, run.parent_keys = steps.get(run.pk), parents

    @property
    def search_hint(self) -> SafeString | str:
        """Return another search for a list without results: for the text as a value, or with a corrected path."""
        query = self.query_parameters.get("q", "").strip()
        if not query:
            return ""
        if not RUNS.is_query(query):
            other = address_with(self.query_parameters, q=query_for_value(query))
            return format_html('<a href="{}">{}</a>', other, _("Search inputs for “%(value)s”") % {"value": query[:60]})
        name = self.query_parameters.get("name", "")
        newest = Run.objects.of_definition(name) if name else Run.objects.all()
        found = suggest_query(query, newest)
        if found is None:
            return ""
        wrong, right, corrected = found
        link = format_html('<a href="{}"><code>{}</code></a>', address_with(self.query_parameters, q=corrected), right)
        return format_html(_("No recent run has {path}. Did you mean {suggestion}?"), path=wrong, suggestion=link)

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
