"""Pages of long tables: counting stops early, because nobody needs to know whether it is 900,000 rows or 901,000."""

from functools import cached_property

from django.core.paginator import Paginator

MOST_COUNTED = 10_000


class CappedPaginator(Paginator):
    """Counts up to a bound; `is_capped` says that there is more."""

    @cached_property
    def count(self) -> int:
        return min(self._bounded_count, MOST_COUNTED)

    @property
    def is_capped(self) -> bool:
        return self._bounded_count > MOST_COUNTED

    @cached_property
    def _bounded_count(self) -> int:
        return self.object_list.order_by()[: MOST_COUNTED + 1].count()
