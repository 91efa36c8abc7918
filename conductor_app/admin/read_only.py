"""Base class of admins for tables that only the engine writes."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst

from ..access.client_address import server_address
from .paginator import CappedPaginator


class ServerAwareChangeList(ChangeList):
    """A list that knows the server's base URL, which its empty state shows in sample commands."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        self.server = server_address(request)
        super().__init__(request, *args, **kwargs)

    def unfiltered_paginator(self) -> CappedPaginator:
        """Return a paginator over all rows, which counts them when a filter hides every row."""
        return CappedPaginator(self.root_queryset.order_by("pk"), self.list_per_page)


class BoundedChangeList(ServerAwareChangeList):
    """A list that always reads at most one page of rows.

    Django reads all rows when it has counted fewer than a page of them; databases then plan a scan of the table.
    """

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not self.multi_page:
            self.result_list = self.result_list[: self.list_per_page]


class ReadOnlyAdmin(admin.ModelAdmin):
    """Admin that adds, changes and deletes no row itself. Actions are commands to the engine."""

    actions = None
    empty_value_display = ""
    list_per_page = 50
    list_max_show_all = 0
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by: tuple[str, ...] = ()

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ChangeList]:
        return BoundedChangeList

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        title = capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False
