"""Operations on many runs for readers: what a selection holds, and what has come of an operation so far."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count

from ..models import BulkItem, BulkOperation
from . import selections

MOST_COUNTED = 10_000
MOST_REASONS = 10


@dataclass(frozen=True, slots=True)
class SelectionCount:
    """What a selection holds, as far as was counted: by definition and version, and by status."""

    total: int
    by_definition: list[tuple[str, int]]
    by_status: list[tuple[str, int]]

    @property
    def is_capped(self) -> bool:
        return self.total >= MOST_COUNTED


def count_selection(selection: Mapping[str, Any]) -> SelectionCount:
    """Count a selection, in one query and up to a bound: the newest of them."""
    rows = (
        selections.selected_runs(selection)
        .order_by("-created_at")
        .values_list("name", "version", "status")[:MOST_COUNTED]
    )
    definitions: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for (name, version, status), count in Counter(rows).items():
        definitions[f"{name} v{version}"] += count
        statuses[status] += count
    return SelectionCount(statuses.total(), definitions.most_common(20), statuses.most_common())


def frequent_answers(operation: BulkOperation) -> list[tuple[str, str, int]]:
    """What was answered most: outcome, answer and how often, those that were refused first."""
    answered = operation.items.exclude(outcome__in=(BulkItem.WAITING, BulkItem.DONE)).order_by()
    counted = Counter[tuple[str, str]]()
    for outcome, answer, count in answered.values_list("outcome", "answer").annotate(Count("pk")).order_by()[:2_000]:
        # The run's own id stands in most answers; without it they are the same.
        counted[outcome, _strip_ids(answer)] += count
    return [(outcome, answer, count) for (outcome, answer), count in counted.most_common(MOST_REASONS)]


def _strip_ids(answer: str) -> str:
    return " ".join("…" if len(word.strip(".:,")) == 36 and word.count("-") == 4 else word for word in answer.split())
