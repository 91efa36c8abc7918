"""What can be asked about runs."""

from dataclasses import dataclass

from django.db.models import F, Q

from ...core.states import RUN
from ...models import ResolvedDefinition
from .fields import Field, Id, Rare, checked
from .grammar import Clause, Value
from .numbers import Moment, Whole
from .payloads import Document
from .questions import Language
from .sql import matching
from .words import Constant, Names, Words

MOST_NAMES = 1_000
CHANGES_AFTER_END_MS = 300_000
"""A run that has ended is not written any more; this much is allowed for anyway."""


@dataclass(frozen=True)
class DefinitionName(Field):
    """Names of definitions: patterns are looked up among the plans, which are few."""

    def plain(self, clause: Clause) -> Clause:
        texts = [value.text for value in clause.values]
        if clause.operator == "STARTS_WITH":
            texts = [texts[0].replace("*", "") + "*"]
        elif clause.operator not in ("=", "IN") or not any("*" in text for text in texts):
            return clause
        for value in clause.values:
            checked(value, value.text)
        names = [name for text in texts for name in (named_like(text) if "*" in text else [text])]
        return Clause(clause.field, "IN", tuple(Value(name, clause.place) for name in names), clause.place)


def named_like(pattern: str) -> list[str]:
    """The names of definitions that match."""
    found = ResolvedDefinition.objects.filter(matching(F("name"), pattern)).order_by("name")
    return list(found.values_list("name", flat=True).distinct()[:MOST_NAMES])


@dataclass(frozen=True)
class Changed(Moment):
    """When a run was changed last, which no index tells: it changes too often. Its end does, and being open."""

    def rank_of(self, clause: Clause) -> int | None:
        return self.rank if clause.operator in (">", ">=", "=", "BETWEEN") else None

    def condition(self, clause: Clause, hidden: bool) -> Q:
        found = super().condition(clause, hidden)
        if hidden or self.rank_of(clause) is None:
            return found
        since = self.value(clause.values[0]) - CHANGES_AFTER_END_MS
        return found & (Q(ended_at__gte=since) | Q(status__in=sorted(RUN.open)))


def begun_by(moment: int) -> Q:
    """Runs that had begun by a moment."""
    return Q(created_at__lte=moment)


ALWAYS = frozenset([""])
NAME = DefinitionName("name", rank=2)
UPDATED = Changed("updated_at", rank=5, begun_by=begun_by)

FIELDS: dict[str, Field] = {
    "workflowId": Id("id", rank=0),
    "workflowType": NAME,
    "workflowName": NAME,
    "version": Whole("version", read_with=frozenset(["", "workflowType", "workflowName"])),
    "status": Words("status", rank=3, read_with=frozenset(["workflowType", "workflowName"]),
                    spelled=tuple(sorted(RUN.statuses))),
    "correlationId": Field("correlation_id", rank=1, partial=True),
    "idempotencyKey": Field("idempotency_key", rank=1, is_nullable=True, is_ordered=False),
    "parentWorkflowId": Field("parent_id", rank=1, partial=True, read_with=ALWAYS),
    "startTime": Moment("created_at", is_bound=True),
    "createTime": Moment("created_at", is_bound=True),
    "endTime": Moment("ended_at", rank=4, is_nullable=True, begun_by=begun_by),
    "updateTime": UPDATED,
    "modifiedTime": UPDATED,
    "priority": Whole("priority", read_with=ALWAYS),
    "createdBy": Field("started_by", read_with=ALWAYS),
    "event": Field("event", rank=1, partial=True),
    "rateLimitKey": Field("limit_key", rank=1, partial=True),
    "failedReferenceTaskNames": Names("failed_refs", rank=6),
    "failedTaskNames": Names("failed_names"),
    "reasonForIncompletion": Rare("reason", rank=6),
    "classifier": Constant("", says="workflow", read_with=ALWAYS),
    "input": Document("input"),
    "output": Document("output"),
    "variables": Document("variables"),
}  # fmt: skip

RUNS = Language(
    things="workflows",
    fields=FIELDS,
    newest="created_at",
    texts=("id", "name", "correlation_id", "reason", "input", "output", "failed_refs", "idempotency_key", "status"),
    exact=("id", "correlation_id", "idempotency_key"),
    sorts={name: field.column for name, field in FIELDS.items()
           if field.column not in ("", "input", "output", "variables")} | {"createTime": "created_at"},
    sorts_by_index=frozenset(("name", "status", "id", "ended_at")),
)  # fmt: skip
