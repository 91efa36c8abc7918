"""Pagination of large tables: counting stops at a limit, because an exact count of many rows is slow and of no use."""

from functools import cached_property

from django.core.paginator import Paginator

MAX_COUNTED = 10_000


class CappedPaginator(Paginator):
    """Paginator that counts up to a limit. `is_capped` is True if there are more rows."""

    @cached_property
    def count(self) -> int:
        return min(self._bounded_count, MAX_COUNTED)

    @property
    def is_capped(self) -> bool:
        return self._bounded_count > MAX_COUNTED

    @cached_property
    def _bounded_count(self) -> int:
        return self.object_list.order_by()[: MAX_COUNTED + 1].count()
