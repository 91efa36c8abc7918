"""Searchable fields of runs and of tasks: those of the attempts and those of their runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db.models import BooleanField, Expression, F, Func, Q, QuerySet

from ...core.decision_context import WIRE_STATUS
from ...core.definition import FORK, possible_keys
from ...core.primitives import derived_id
from ...core.states import ATTEMPT, RUN
from ...core.step_types import STEP_TYPES
from ...core.step_types.forks import ForkJoin, ForkJoinDynamic
from ...definitions.models import ResolvedDefinition
from ..models import Attempt, Run
from . import fields
from .documents import DocumentSearchField
from .free_text import SearchLanguage
from .parser import Clause, QueryValue

MAX_NAMES = 1_000
CHANGES_AFTER_END_MS = 300_000
"""Tolerance in milliseconds for changes to a run after its end."""


@dataclass(frozen=True)
class DefinitionNameField(fields.SearchField):
    """Name of a definition. Patterns are resolved to names by the definitions, which are few."""

    def rewrite_for_index(self, clause: Clause) -> Clause:
        texts = [value.text for value in clause.values]
        if clause.operator == "STARTS_WITH":
            texts = [texts[0].replace("*", "") + "*"]
        elif clause.operator not in ("=", "IN") or not any("*" in text for text in texts):
            return clause
        for value in clause.values:
            fields.check_pattern(value, value.text)
        names = [name for text in texts for name in (definition_names_like(text) if "*" in text else [text])]
        return Clause(clause.field, "IN", tuple(QueryValue(name, clause.position) for name in names), clause.position)


def definition_names_like(pattern: str) -> list[str]:
    found = ResolvedDefinition.objects.filter(fields.matches_pattern(F("name"), pattern)).order_by("name")
    return list(found.values_list("name", flat=True).distinct()[:MAX_NAMES])


@dataclass(frozen=True)
class UpdatedField(fields.TimeField):
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
DEFINITION_NAME = DefinitionNameField("name", rank=2)
UPDATED = UpdatedField("updated_at", rank=5, started_by_time=started_by_time)

RUN_FIELDS: dict[str, fields.SearchField] = {
    "workflowId": fields.IdSearchField("id", rank=0),
    "workflowType": DEFINITION_NAME,
    "workflowName": DEFINITION_NAME,
    "version": fields.IntegerField("version", covered_by=frozenset(["", "workflowType", "workflowName"])),
    "status": fields.ChoiceField("status", rank=3, covered_by=frozenset(["workflowType", "workflowName"]),
                    choices=tuple(sorted(RUN.statuses))),
    "correlationId": fields.SearchField("correlation_id", rank=1, has_partial_index=True),
    "idempotencyKey": fields.SearchField("idempotency_key", rank=1, is_nullable=True, is_ordered=False),
    "parentWorkflowId": fields.SearchField("parent_id", rank=1, has_partial_index=True, covered_by=COVERED_BY_ALL_ROWS),
    "startTime": fields.TimeField("created_at", is_order_column=True),
    "createTime": fields.TimeField("created_at", is_order_column=True),
    "endTime": fields.TimeField("ended_at", rank=4, is_nullable=True, started_by_time=started_by_time),
    "updateTime": UPDATED,
    "modifiedTime": UPDATED,
    "priority": fields.IntegerField("priority", covered_by=COVERED_BY_ALL_ROWS),
    "createdBy": fields.SearchField("started_by", rank=5, covered_by=COVERED_BY_ALL_ROWS),
    "event": fields.SearchField("event", rank=1, has_partial_index=True),
    "rateLimitKey": fields.SearchField("limit_key", rank=1, has_partial_index=True),
    "failedReferenceTaskNames": fields.NameListField("failed_refs", rank=6),
    "failedTaskNames": fields.NameListField("failed_names"),
    "reasonForIncompletion": fields.RareTextField("reason", rank=6),
    "classifier": fields.ConstantField("", constant="workflow", covered_by=COVERED_BY_ALL_ROWS),
    "input": DocumentSearchField("input"),
    "output": DocumentSearchField("output"),
    "variables": DocumentSearchField("variables"),
}  # fmt: skip

RUNS = SearchLanguage(
    plural_name="workflows",
    fields=RUN_FIELDS,
    newest="created_at",
    texts=("id", "name", "correlation_id", "reason", "input", "output", "failed_refs", "idempotency_key", "status"),
    exact=("id", "correlation_id", "idempotency_key"),
    sorts={name: field.column for name, field in RUN_FIELDS.items()
           if field.column not in ("", "input", "output", "variables")} | {"createTime": "created_at"},
    sorts_by_index=frozenset(("name", "status", "id", "ended_at")),
)  # fmt: skip


MAX_RUNS = 1_000
JOINED_SCAN_LIMIT = 50_000
"""Maximum number of rows that are joined with their task or run."""
TASK_ONLY_STATUSES = ("COMPLETED_WITH_ERRORS", "SKIPPED")
"""Statuses that only tasks have, not their attempts."""
FAILED_STATUSES = tuple(sorted(ATTEMPT.final - {"COMPLETED"}))
OPEN_STATUSES = tuple(sorted(ATTEMPT.open))
OWN_STATUS = {WIRE_STATUS.get(status, status): status for status in sorted(ATTEMPT.statuses)}
TASK_NAME_FIELDS = frozenset(["taskDefName", "taskType"])
SPELLED_TYPES = {FORK: (ForkJoin.type, ForkJoinDynamic.type)}


def searchable_attempts() -> QuerySet:
    found = Attempt.objects.all()
    # Without standalone tasks the filter is omitted, so that an index alone finds where a scan begins.
    return found.filter(fields.IsNotNull(F("run_id"))) if found.filter(run__isnull=True).exists() else found


class AmongLiterals(Func):
    """IN with literals, because SQLite uses a partial index only if the statement contains the literals."""

    template = "%(expressions)s IN (%(words)s)"
    output_field = BooleanField()

    def __init__(self, name: str, words: Sequence[str]) -> None:
        super().__init__(F(name), words=", ".join(f"'{word}'" for word in words))


@dataclass(frozen=True)
class TaskStatus(fields.ChoiceField):
    """The status that clients see: that of the attempt, or that of the task if it is more specific."""

    def rank_of(self, clause: Clause) -> int | None:
        if super().rank_of(clause) is None:
            return None
        words = set(self.matching_choices(clause))
        own = {OWN_STATUS.get(word, word) for word in words}
        is_indexed = any(own <= set(indexed) for indexed in (FAILED_STATUSES, OPEN_STATUSES, TASK_ONLY_STATUSES))
        return self.rank if is_indexed else None

    def is_covered_by(self, leading: str | None, clause: Clause) -> bool:
        """Return True if the clause selects failed attempts and the name leads: the partial index covers both."""
        is_bad = clause.operator in ("=", "IN") and {
            OWN_STATUS.get(word) for word in self.matching_choices(clause)
        } <= set(FAILED_STATUSES)
        return leading in TASK_NAME_FIELDS and is_bad

    def index_filter(self, clause: Clause) -> Q:
        return Q(AmongLiterals("status", FAILED_STATUSES))

    def choices_condition(self, found: list[str], without_index: bool) -> Q:
        own = [OWN_STATUS[word] for word in found if word in OWN_STATUS]
        shows_task = Q(task__status__in=TASK_ONLY_STATUSES, task__attempt_id=F("id"))
        conditions = fields.MATCH_NONE
        if own:
            conditions |= (
                Q(fields.compare_any(fields.column_expression("status", without_index), own))
                & ~shows_task
                & self.index_words(own, without_index)
            )
        if odd := [word for word in found if word in TASK_ONLY_STATUSES]:
            literal = Q(AmongLiterals("task__status", TASK_ONLY_STATUSES)) if not own else Q()
            conditions |= Q(task__status__in=odd, task__attempt_id=F("id")) & literal
        return conditions

    @staticmethod
    def index_words(own: list[str], without_index: bool) -> Q:
        """Return the condition of the partial index that lists these statuses, if there is one."""
        if without_index:
            return Q()
        if set(own) <= set(FAILED_STATUSES):
            return Q(AmongLiterals("status", FAILED_STATUSES))
        return Q(AmongLiterals("status", OPEN_STATUSES)) & ~Q(id="") if set(own) <= set(OPEN_STATUSES) else Q()


@dataclass(frozen=True)
class TaskName(fields.SearchField):
    """Name of a task: that of its task definition, or the step type for steps that the engine executes."""

    def is_selective(self, text: str) -> bool:
        return super().is_selective(text) and text not in STEP_TYPES and text not in SPELLED_TYPES

    def equals_any(self, left: Expression | F, values: Sequence[QueryValue]) -> Q:
        types = [kind for value in values if not self.is_selective(value.text) for kind in self.types(value.text)]
        named = [value for value in values if self.is_selective(value.text) or "*" in value.text]
        by_type = Q(task__type__in=types) if types else fields.MATCH_NONE
        return by_type | super().equals_any(left, named) if named else by_type

    def types(self, text: str) -> tuple[str, ...]:
        return SPELLED_TYPES.get(text, (text,))


@dataclass(frozen=True)
class ScheduledField(fields.TimeField):
    """Time at which an attempt was scheduled. Its id encodes the same time, and orders the rows."""

    def condition(self, clause: Clause, without_index: bool) -> Q:
        found = super().condition(clause, True)
        match clause.operator:
            case "NULL":
                return fields.MATCH_NONE
            case "BETWEEN":
                return found & self.since(clause.values[0]) & self.until(clause.values[1])
            case ">" | ">=":
                return found & self.since(clause.values[0])
            case "<" | "<=":
                return found & self.until(clause.values[0])
        return found

    def since(self, value: QueryValue) -> Q:
        return Q(id__gte=moment_of_id(self.value(value)))

    def until(self, value: QueryValue) -> Q:
        return task_started_by_time(self.value(value))


def task_started_by_time(moment: int) -> Q:
    """Return the condition for attempts that were scheduled by a given time."""
    return Q(id__lt=moment_of_id(moment + 1))


def moment_of_id(moment: int) -> str:
    """Return the prefix of ids that were created at a given time."""
    return derived_id(max(0, min(moment, 2**48 - 1)))[:13]


@dataclass(frozen=True)
class RunField(fields.SearchField):
    """A field of the run. If few runs have the value, the search uses the ids of these runs."""

    scan_limit: int = JOINED_SCAN_LIMIT

    def rewrite_for_index(self, clause: Clause) -> Clause:
        if clause.operator not in ("=", "IN") or any(not value.text or "*" in value.text for value in clause.values):
            return clause
        name = self.column.removeprefix("run__")
        runs = Run.objects.filter(**{f"{name}__in": [value.text for value in clause.values]}).exclude(**{name: ""})
        ids = list(runs.values_list("pk", flat=True)[: MAX_RUNS + 1])
        if len(ids) > MAX_RUNS:
            return clause
        return Clause("workflowId", "IN", tuple(QueryValue(id, clause.position) for id in ids), clause.position)


@dataclass(frozen=True)
class LookupField(fields.SearchField):
    """A field whose condition a function builds from each searched text."""

    lookup: Callable[[str], Q] = lambda text: fields.MATCH_NONE

    def condition(self, clause: Clause, without_index: bool) -> Q:
        if clause.operator not in ("=", "IN"):
            return super().condition(clause, without_index)
        found = fields.MATCH_NONE
        for value in clause.values:
            found |= self.lookup(fields.check_pattern(value, value.text))
        return found


def by_reference(text: str) -> Q:
    """Return the condition for a task reference, in any iteration, or in one iteration such as `pay__2`."""
    if "*" in text:
        return Q(fields.matches_pattern(F("task__ref"), text))
    [own, *in_iterations] = possible_keys(text)
    found = Q(task__ref=own.ref)
    for key in in_iterations:
        found |= Q(task__ref=key.ref, task__iteration_path=".".join(map(str, key.iteration_path)))
    return found


RUN_NAME = RunField("run__name")
TASK_NAME = TaskName("name", rank=2, scan_limit=JOINED_SCAN_LIMIT)
REASON = fields.SearchField("reason")

TASK_FIELDS: dict[str, fields.SearchField] = {
    "taskId": fields.IdSearchField("id", rank=0),
    "workflowId": fields.SearchField("run_id", rank=1, is_ordered=False),
    "workflowInstanceId": fields.SearchField("run_id", rank=1, is_ordered=False),
    "taskType": TASK_NAME,
    "taskDefName": TASK_NAME,
    "referenceTaskName": LookupField("task__ref", scan_limit=JOINED_SCAN_LIMIT, lookup=by_reference),
    "workflowType": RUN_NAME,
    "workflowName": RUN_NAME,
    "correlationId": RunField("run__correlation_id"),
    "status": TaskStatus("status", rank=3, is_ordered=False, choices=tuple(sorted({*OWN_STATUS, *TASK_ONLY_STATUSES}))),
    "workerId": fields.SearchField("worker"),
    "domain": fields.SearchField("domain", rank=2, has_partial_index=True),
    "scheduledTime": ScheduledField("scheduled_at", is_order_column=True),
    "startTime": fields.TimeField("started_at", is_nullable=True, started_by_time=task_started_by_time),
    "endTime": fields.TimeField("ended_at", is_nullable=True, started_by_time=task_started_by_time),
    "updateTime": fields.TimeField("updated_at", is_nullable=True, started_by_time=task_started_by_time),
    "retryCount": fields.IntegerField("number"),
    "pollCount": fields.IntegerField("poll_count"),
    "workflowPriority": fields.IntegerField("run__priority", scan_limit=JOINED_SCAN_LIMIT),
    "priority": fields.IntegerField("run__priority", scan_limit=JOINED_SCAN_LIMIT),
    "reason": REASON,
    "reasonForIncompletion": REASON,
    "subWorkflowId": fields.SearchField("child_id"),
    "retriedTaskId": fields.SearchField("previous_id"),
    "input": DocumentSearchField("input"),
    "output": DocumentSearchField("output"),
}

TASKS = SearchLanguage(
    plural_name="tasks",
    fields=TASK_FIELDS,
    newest="id",
    texts=("id", "run_id", "name", "reason", "worker", "input", "output", "status"),
    exact=("id", "run_id"),
    sorts={name: field.column for name, field in TASK_FIELDS.items() if field.column not in ("input", "output")}
    | {"scheduledTime": "id"},
    sorts_by_index=frozenset(("id", "run_id")),
    is_joined=True,
)
