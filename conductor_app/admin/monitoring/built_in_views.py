"""Views that everybody has, before anybody has saved one; and where a selection of runs is shown and used."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from ... import clock
from ...core.errors import Invalid
from ...insight import selections
from ...insight.durations import DAY, HOUR
from ...insight.selections.api_queries import to_query
from ..bulk.bulk_plan import selection_parameters
from ..runs.filters import FILTER_FIELDS, FilterField, parse_duration


@dataclass(frozen=True, slots=True)
class BuiltInView:
    """A view that is there by itself: its name, what it shows, where; and where one acts on it, if it is of runs."""

    name: str
    words: str
    address: str
    operate: str = ""


def built_in_views(request: HttpRequest) -> Iterator[BuiltInView]:
    """What an operator looks at most, as it is at this moment."""
    now = clock.now()
    yield _selection_view(_("Failed today"), {"status": ["FAILED", "TIMED_OUT"], "ended_since": now - now % DAY})
    yield BuiltInView(_("Late"), _("runs that are open for longer than usual"), reverse("admin:pulse"))
    yield BuiltInView(_("Nobody polling"), _("queues in which work waits, and no worker asks"), reverse("admin:queues"))
    yield BuiltInView(_("Waiting for people"), _("tasks that wait for a person's answer"), reverse("admin:waiting"))
    yield _selection_view(_("Long running"), {"status": ["RUNNING"], "started_before": now - HOUR})
    yield BuiltInView(_("Retrying"), _("attempts that wait for their next try, or are at it"), retrying_address())
    yield _selection_view(_("My starts"), {"started_by": request.user.get_username()})


def retrying_address() -> str:
    """Where the attempts are that are not the first of their task."""
    return reverse("admin:conductor_attempt_changelist", query={"state": "retrying"})


def _selection_view(name: str, selection: dict[str, Any]) -> BuiltInView:
    return BuiltInView(name, selection_text(selection), list_address(selection), operate_address(selection))


def selection_text(selection: Mapping[str, Any]) -> str:
    """A selection as a person would say it."""
    try:
        return selections.describe_selection(selection)
    except Invalid:
        return _("a selection that is no longer understood")


def selection_query(selection: Mapping[str, Any]) -> dict[str, str]:
    """A selection as the address of the list of runs names it."""
    found = {
        field.name: _query_value(field, selection[field.selection_key])
        for field in FILTER_FIELDS
        if field.selection_key in selection
    }
    return found | ({"status": ",".join(selection["status"])} if selection.get("status") else {})


def _query_value(field: FilterField, value: Any) -> str:
    return f"{value} ms" if field.parse is parse_duration else str(value)


def list_address(selection: Mapping[str, Any]) -> str:
    """Where the list of runs shows a selection."""
    return reverse("admin:conductor_run_changelist", query=selection_query(selection) or None)


def operate_address(selection: Mapping[str, Any]) -> str:
    """Where something is done to all of them."""
    return reverse("admin:bulk_plan", query=selection_parameters(selection) or None)


def export_address(selection: Mapping[str, Any], format: str) -> str:
    """Where they are a file."""
    return reverse("admin:run_export", args=[format], query=selection_query(selection) or None)


def api_address(request: HttpRequest, selection: Mapping[str, Any]) -> str:
    """Where programs find the same runs; empty where the API has no words for it."""
    query = to_query(selection)
    if query is None:
        return ""
    return request.build_absolute_uri(f"/api/workflow/search?{urlencode({'query': query})}")
