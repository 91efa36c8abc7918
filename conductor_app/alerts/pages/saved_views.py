"""Saved views: named selections of runs, which the list of runs has as tabs and the overview as tiles."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.visibility import visible
from ...bulk import selections
from ...bulk.pages.operations import parse_selection
from ...core.errors import Invalid, NotFound, RequestRefused
from ...db import keyset_pages
from ...runs.pages.filters import list_parameters, selection_parameters, selection_query
from ...web.forms import parse_number
from ...web.pages import ObjectPage, Page, show_refusal
from .. import commands
from ..models import SavedView
from ..queries import VIEW_PERMISSION, is_own_view, visible_views

MAX_TILES = 8
ALERTS_PERMISSION = "conductor.change_run"


class ViewsPage(Page):
    """List of the saved views."""

    name, title, template, permission = (
        "views",
        gettext_lazy("Saved views"),
        "ops/alerts/views.html",
        VIEW_PERMISSION,
    )
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        views = list(visible_views(request).prefetch_related("alerts"))
        titles = selections.failure_group_titles(view.selection for view in views)
        return {
            "views": [
                {
                    "view": view,
                    "is_own": is_own_view(view, request.user.get_username()),
                    "words": selection_text(view.selection, titles),
                    "list": list_address(view.selection),
                }
                for view in views
            ],
            **self._new_view_context(request),
        }

    def _new_view_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the selection that the form will save, from the filters of the list of runs."""
        if not request.GET:
            return {}
        try:
            fresh = (
                list_parameters(request.GET)
                if "from_list" in request.GET
                else selection_parameters(parse_selection(request.GET))
            )
            selections.selected_runs(_parse_parameters(fresh)).order_by()[:1].exists()
            return {"fresh": fresh, "description": selection_text(_parse_parameters(fresh))}
        except RequestRefused as refused:
            return {"refused": refused.message}

    def post(self, request: HttpRequest) -> HttpResponse:
        by = request.user.get_username()
        try:
            if request.POST.get("do") == "remove":
                commands.remove_view(parse_number(request.POST.get("view", ""), _("Saved view")), by)
                messages.success(request, _("View deleted."))
            else:
                fresh = parse_selection(request.POST)
                shared = "is_shared" in request.POST
                tile = "is_tile" in request.POST
                view = commands.save_view(request.POST.get("title", ""), fresh, by, is_shared=shared, is_tile=tile)
                address = reverse("admin:alerts", query={"view": view.pk}, fragment="add")
                link = format_html(' <a href="{}">{}</a>', address, _("Add an alert"))
                may_add = request.user.has_perm(ALERTS_PERMISSION)
                messages.success(request, format_html("{}{}", _("View saved."), link if may_add else ""))
                return HttpResponseRedirect(list_address(view.selection))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:views"))


class ViewPage(ObjectPage):
    """Address of one view, which the audit log links to: it leads to the runs of the view."""

    name, permission, route = "view", VIEW_PERMISSION, "views/<int:view_id>/"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest, view_id: int) -> Any:
        """Redirect to the list of the runs."""
        view = visible_views(request).filter(pk=min(view_id, 2**62)).first()
        if view is None:
            raise NotFound(_("No such view, or it is not shared."))
        return HttpResponseRedirect(list_address(view.selection))


class TilesPage(Page):
    """Fragment of the overview with the views that are tiles, each with its count."""

    name, permission, title = "view_tiles", VIEW_PERMISSION, gettext_lazy("Saved views")
    shows_granted_rows = True
    template, live_template = "ops/monitoring/tiles_page.html", "ops/monitoring/tiles.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return {"tiles": [_tile_context(view) for view in visible_views(request).filter(is_tile=True)[:MAX_TILES]]}


def selection_text(selection: Mapping[str, Any], group_titles: Mapping[int, str] | None = None) -> str:
    """Return a selection as text. `group_titles`: those of its failure groups, if they are known."""
    try:
        return selections.describe_selection(selection, group_titles)
    except Invalid:
        return _("a selection that is no longer valid")


def list_address(selection: Mapping[str, Any]) -> str:
    """Return the address of the list of runs with a selection."""
    return reverse("admin:conductor_run_changelist", query=selection_query(selection) or None)


def _tile_context(view: SavedView) -> dict[str, Any]:
    """Return the count of a view. A view with an invalid selection has no count and does not affect the others."""
    try:
        count, is_capped = keyset_pages.count_rows(visible(selections.selected_runs(view.selection)))
    except Invalid:
        count, is_capped = None, False
    return {"view": view, "count": count, "is_capped": is_capped, "address": list_address(view.selection)}


def _parse_parameters(parameters: dict[str, str]) -> dict[str, Any]:
    return parse_selection(QueryDict(urlencode(parameters)))
