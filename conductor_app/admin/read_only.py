"""The shape of an admin of tables that the engine owns: looked at, never typed into."""

from django.contrib import admin
from django.http import HttpRequest

from .paginator import CappedPaginator


class ReadOnlyAdmin(admin.ModelAdmin):
    """No row is added, changed or deleted here; what can be done is done by asking the engine."""

    actions = None
    list_per_page = 50
    list_max_show_all = 0
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by: tuple[str, ...] = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False
