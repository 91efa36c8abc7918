"""Bulk operations for the pages: the size of a selection, and the most frequent rejections."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count

from ...models import BulkItem, BulkOperation
from . import selections

MAX_COUNTED = 10_000
MAX_REASONS = 10


@dataclass(frozen=True, slots=True)
class SelectionCount:
    """Number of runs in a selection, in all, by definition and version, and by status. Counts at most MAX_COUNTED."""

    total: int
    by_definition: list[tuple[str, int]]
    by_status: list[tuple[str, int]]

    @property
    def is_capped(self) -> bool:
        return self.total >= MAX_COUNTED


def count_selection(selection: Mapping[str, Any]) -> SelectionCount:
    """Count the newest runs of a selection, up to MAX_COUNTED, in one query; any of those of a failure group."""
    # No index has the runs of a failure group in the order of their start: the newest are known when all are read.
    order = () if "failure_group" in selection else ("-created_at",)
    rows = selections.selected_runs(selection).order_by(*order).values_list("name", "version", "status")[:MAX_COUNTED]
    definitions: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for (name, version, status), count in Counter(rows).items():
        definitions[f"{name} v{version}"] += count
        statuses[status] += count
    return SelectionCount(statuses.total(), definitions.most_common(20), statuses.most_common())


def frequent_answers(operation: BulkOperation) -> list[tuple[str, str, int]]:
    """Return the most frequent answers of an operation, as triples of outcome, answer and count."""
    answered = operation.items.exclude(outcome__in=(BulkItem.WAITING, BulkItem.DONE)).order_by()
    counted = Counter[tuple[str, str]]()
    for outcome, answer, count in answered.values_list("outcome", "answer").annotate(Count("pk")).order_by()[:2_000]:
        # Most answers contain the id of their run. Without it, equal answers can be counted together.
        counted[outcome, _strip_ids(answer)] += count
    return [(outcome, answer, count) for (outcome, answer), count in counted.most_common(MAX_REASONS)]


def _strip_ids(answer: str) -> str:
    return " ".join("…" if len(word.strip(".:,")) == 36 and word.count("-") == 4 else word for word in answer.split())
