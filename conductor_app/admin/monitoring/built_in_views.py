"""Built-in views, and the addresses under which a selection of runs is listed, exported and processed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from ... import clock
from ...access.client_address import server_address
from ...core.errors import Invalid
from ...insight.bulk import selections
from ...insight.bulk.selections.api_queries import to_query
from ...insight.durations import DAY, HOUR
from ..bulk.bulk_plan import selection_parameters
from ..runs.run_filters import FILTER_FIELDS, FilterField, parse_duration


@dataclass(frozen=True, slots=True)
class BuiltInView:
    """A built-in view: its name, its description, its address, and the address of a bulk operation if it lists runs."""

    name: str
    words: str
    address: str
    operate: str = ""


def built_in_views(request: HttpRequest) -> Iterator[BuiltInView]:
    """Yield the built-in views for the current time and user."""
    now = clock.now()
    yield _selection_view(_("Failed today"), {"status": ["FAILED", "TIMED_OUT"], "ended_since": now - now % DAY})
    yield BuiltInView(_("Slow"), _("runs that take longer than usual"), reverse("admin:overview_activity"))
    yield BuiltInView(_("No workers"), _("queues with pending tasks and no polling worker"), reverse("admin:queues"))
    yield BuiltInView(_("Human tasks"), _("tasks that a person must complete"), reverse("admin:human_tasks"))
    yield _selection_view(_("Long running"), {"status": ["RUNNING"], "started_before": now - HOUR})
    yield BuiltInView(_("Retrying"), _("attempts after a retry, pending or running"), retrying_address())
    yield _selection_view(_("My starts"), {"started_by": request.user.get_username()})


def retrying_address() -> str:
    """Return the address of the list of retries."""
    return reverse("admin:conductor_attempt_changelist", query={"state": "retrying"})


def _selection_view(name: str, selection: dict[str, Any]) -> BuiltInView:
    return BuiltInView(name, selection_text(selection), list_address(selection), operate_address(selection))


def selection_text(selection: Mapping[str, Any], group_titles: Mapping[int, str] | None = None) -> str:
    """Return a selection as text. `group_titles`: those of its failure groups, if they are known."""
    try:
        return selections.describe_selection(selection, group_titles)
    except Invalid:
        return _("a selection that is no longer valid")


def selection_query(selection: Mapping[str, Any]) -> dict[str, str]:
    """Return the query parameters of a selection in the list of runs."""
    found = {
        field.name: _query_value(field, selection[field.selection_key])
        for field in FILTER_FIELDS
        if field.selection_key in selection
    }
    return found | ({"status": ",".join(selection["status"])} if selection.get("status") else {})


def _query_value(field: FilterField, value: Any) -> str:
    return f"{value} ms" if field.parse is parse_duration else str(value)


def list_address(selection: Mapping[str, Any]) -> str:
    """Return the address of the list of runs with a selection."""
    return reverse("admin:conductor_run_changelist", query=selection_query(selection) or None)


def operate_address(selection: Mapping[str, Any]) -> str:
    """Return the address that plans a bulk operation on a selection."""
    return reverse("admin:bulk_plan", query=selection_parameters(selection) or None)


def export_address(selection: Mapping[str, Any], format: str) -> str:
    """Return the address that exports a selection."""
    return reverse("admin:run_export", args=[format], query=selection_query(selection) or None)


def api_address(request: HttpRequest, selection: Mapping[str, Any]) -> str:
    """Return the address of a selection in the API. Empty if the API's query language cannot express it."""
    query = to_query(selection)
    if query is None:
        return ""
    return f"{server_address(request)}/api/workflow/search?{urlencode({'query': query})}"
