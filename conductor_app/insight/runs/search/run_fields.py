"""Searchable fields of runs."""

from dataclasses import dataclass

from django.db.models import F, Q

from ....core.states import RUN
from ....models import ResolvedDefinition
from .choice_fields import ChoiceField, ConstantField, NameListField
from .field_types import IdSearchField, RareTextField, SearchField, check_pattern
from .number_fields import IntegerField, TimeField
from .payload_fields import DocumentSearchField
from .query_parser import Clause, QueryValue
from .search_language import SearchLanguage
from .search_sql import matches_pattern

MAX_NAMES = 1_000
CHANGES_AFTER_END_MS = 300_000
"""Tolerance in milliseconds for changes to a run after its end."""


@dataclass(frozen=True)
class DefinitionNameField(SearchField):
    """Name of a definition. Patterns are resolved to names by the definitions, which are few."""

    def rewrite_for_index(self, clause: Clause) -> Clause:
        texts = [value.text for value in clause.values]
        if clause.operator == "STARTS_WITH":
            texts = [texts[0].replace("*", "") + "*"]
        elif clause.operator not in ("=", "IN") or not any("*" in text for text in texts):
            return clause
        for value in clause.values:
            check_pattern(value, value.text)
        names = [name for text in texts for name in (definition_names_like(text) if "*" in text else [text])]
        return Clause(clause.field, "IN", tuple(QueryValue(name, clause.position) for name in names), clause.position)


def definition_names_like(pattern: str) -> list[str]:
    """Return the definition names that match a pattern."""
    found = ResolvedDefinition.objects.filter(matches_pattern(F("name"), pattern)).order_by("name")
    return list(found.values_list("name", flat=True).distinct()[:MAX_NAMES])


@dataclass(frozen=True)
class UpdatedField(TimeField):
    """Time of the last change of a run. It has no index, because it changes too often.

    The indexes on end and status narrow the rows: a run changes only while it is open, or around its end.
    """

    def rank_of(self, clause: Clause) -> int | None:
        return self.rank if clause.operator in (">", ">=", "=", "BETWEEN") else None

    def condition(self, clause: Clause, without_index: bool) -> Q:
        found = super().condition(clause, without_index)
        if without_index or self.rank_of(clause) is None:
            return found
        since = self.value(clause.values[0]) - CHANGES_AFTER_END_MS
        return found & (Q(ended_at__gte=since) | Q(status__in=sorted(RUN.open)))


def started_by_time(moment: int) -> Q:
    """Return the condition for runs created by a given time."""
    return Q(created_at__lte=moment)


COVERED_BY_ALL_ROWS = frozenset([""])
NAME = DefinitionNameField("name", rank=2)
UPDATED = UpdatedField("updated_at", rank=5, started_by_time=started_by_time)

FIELDS: dict[str, SearchField] = {
    "workflowId": IdSearchField("id", rank=0),
    "workflowType": NAME,
    "workflowName": NAME,
    "version": IntegerField("version", covered_by=frozenset(["", "workflowType", "workflowName"])),
    "status": ChoiceField("status", rank=3, covered_by=frozenset(["workflowType", "workflowName"]),
                    choices=tuple(sorted(RUN.statuses))),
    "correlationId": SearchField("correlation_id", rank=1, has_partial_index=True),
    "idempotencyKey": SearchField("idempotency_key", rank=1, is_nullable=True, is_ordered=False),
    "parentWorkflowId": SearchField("parent_id", rank=1, has_partial_index=True, covered_by=COVERED_BY_ALL_ROWS),
    "startTime": TimeField("created_at", is_order_column=True),
    "createTime": TimeField("created_at", is_order_column=True),
    "endTime": TimeField("ended_at", rank=4, is_nullable=True, started_by_time=started_by_time),
    "updateTime": UPDATED,
    "modifiedTime": UPDATED,
    "priority": IntegerField("priority", covered_by=COVERED_BY_ALL_ROWS),
    "createdBy": SearchField("started_by", rank=5, covered_by=COVERED_BY_ALL_ROWS),
    "event": SearchField("event", rank=1, has_partial_index=True),
    "rateLimitKey": SearchField("limit_key", rank=1, has_partial_index=True),
    "failedReferenceTaskNames": NameListField("failed_refs", rank=6),
    "failedTaskNames": NameListField("failed_names"),
    "reasonForIncompletion": RareTextField("reason", rank=6),
    "classifier": ConstantField("", constant="workflow", covered_by=COVERED_BY_ALL_ROWS),
    "input": DocumentSearchField("input"),
    "output": DocumentSearchField("output"),
    "variables": DocumentSearchField("variables"),
}  # fmt: skip

RUNS = SearchLanguage(
    plural_name="workflows",
    fields=FIELDS,
    newest="created_at",
    texts=("id", "name", "correlation_id", "reason", "input", "output", "failed_refs", "idempotency_key", "status"),
    exact=("id", "correlation_id", "idempotency_key"),
    sorts={name: field.column for name, field in FIELDS.items()
           if field.column not in ("", "input", "output", "variables")} | {"createTime": "created_at"},
    sorts_by_index=frozenset(("name", "status", "id", "ended_at")),
)  # fmt: skip
