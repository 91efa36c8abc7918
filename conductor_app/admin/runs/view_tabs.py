"""Tabs above the list of runs: built-in views and the saved views of the user, each with its number of runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, QueryDict
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from ...core.errors import Invalid
from ...insight import keyset_pages
from ...insight.bulk import selections
from ..badges import format_lower_bound
from ..monitoring.built_in_views import selection_query
from ..monitoring.saved_views import visible_views
from .run_filters import FILTER_FIELDS, clean_text, parse_selection, parse_statuses

MAX_SAVED = 6
"""Saved views that are tabs. The page of the views has all."""


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
    yield _("Failed in 24 h"), {"status": "FAILED,TIMED_OUT", "started": "24h"}
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
    preset = query.get("started")
    return {"started": preset} if preset else {}


def _to_parameters(query: dict[str, str]) -> QueryDict:
    return QueryDict(urlencode(query))


def _count_text(tab: ViewTab) -> str:
    """Return the number of runs. A view with an invalid selection has none and does not affect the others."""
    try:
        selection = parse_selection(_to_parameters(tab.query))
        return format_lower_bound(*keyset_pages.count_rows(selections.selected_runs(selection)))
    except Invalid:
        return ""
