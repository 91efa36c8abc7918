"""Results of bulk operations: what became of their runs, and the most frequent rejections."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext_lazy

from ..access.authentication import Actor, current_actor
from ..access.permissions import READ, RUN_VIEW_RIGHTS, WORKFLOW_DEF
from ..access.visibility import visible
from ..core.failure_grouping import informative_line
from ..core.states import RUN, RUNNING, TERMINATED
from ..explanations.cause import failure_reasons
from ..failures.models import Failure, FailureGroup
from ..runs.models import Run
from ..runs.queries.recent import annotate_key_inputs
from . import selections
from .models import BulkItem, BulkOperation
from .selections import MAX_EXAMINED, UNSUCCESSFUL_STATUSES, examined_items

MAX_COUNTED = 10_000
MAX_REASONS = 10
MAX_LISTED_RUNS = 20
MAX_SEARCHED = 500
"""Operations of others that are searched for those on runs of one workflow."""


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
    runs = selections.selected_runs(selection).order_by(*_reading_order(selection))
    rows = runs.values_list("name", "version", "status")[:MAX_COUNTED]
    definitions: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for (name, version, status), count in Counter(rows).items():
        definitions[f"{name} v{version}"] += count
        statuses[status] += count
    return SelectionCount(statuses.total(), definitions.most_common(20), statuses.most_common())


def first_runs(selection: Mapping[str, Any]) -> list[Run]:
    """Return the newest runs of a selection with the inputs that their keys need; any of those of a failure group."""
    runs = selections.selected_runs(selection).order_by(*_reading_order(selection))
    return list(annotate_key_inputs(runs.defer("domains"))[:MAX_LISTED_RUNS])


def _reading_order(selection: Mapping[str, Any]) -> tuple[str, ...]:
    # No index has the runs of a failure group in the order of their start: the newest are known when all are read.
    return () if selection.keys() & {"failure_group", "failure_groups"} else ("-created_at",)


def allows_action(action: str, status: str) -> bool:
    """Return True if the state of a run does not forbid an action. The run may refuse it for another reason."""
    if action == "upgrade":
        return status == RUNNING
    return RUN.allows(status, action) if action in RUN_EVENTS else True


def visible_operations() -> QuerySet[BulkOperation]:
    """Return the operations that the current actor may see."""
    actor = current_actor()
    return BulkOperation.objects.all() if actor is None else operations_of(actor)


def operations_of(actor: Actor) -> QuerySet[BulkOperation]:
    """Return the operations that an actor may see: all if it may see all runs.

    Otherwise its own, and of the newest MAX_SEARCHED those that can only select runs of a workflow that it may see.
    """
    rows = BulkOperation.objects.all()
    if actor.permissions.allows_all(*RUN_VIEW_RIGHTS):
        return rows
    newest = list(rows.order_by("-created_at").only("selection")[:MAX_SEARCHED])
    workflows = _workflows_of_groups(row.selection for row in newest)
    ids = [
        row.pk
        for row in newest
        if (name := selected_workflow(row.selection, workflows)) and actor.permissions.allows(READ, WORKFLOW_DEF, name)
    ]
    return rows.filter(Q(pk__in=ids) | (Q(owner_id=actor.user_id) if actor.user_id else Q(pk__in=())))


def selected_workflow(selection: Mapping[str, Any], workflows: Mapping[int, str] | None = None) -> str:
    """Return the name of the only workflow whose runs a selection can select, or an empty text.

    `workflows`: the workflows of failure groups, if they are known.
    """
    if isinstance(name := selection.get("definition"), str):
        return name
    group = selection.get(selections.FAILURE_GROUP)
    if group is None:
        return ""
    return (_workflows_of_groups([selection]) if workflows is None else workflows).get(group, "")


def _workflows_of_groups(chosen: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Return the workflows of the failure groups that selections name. Runs one query, or none."""
    ids = {selection[selections.FAILURE_GROUP] for selection in chosen if selections.FAILURE_GROUP in selection}
    return dict(FailureGroup.objects.filter(pk__in=ids).values_list("pk", "definition")) if ids else {}


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


REOPENING_ACTIONS = ("retry", "rerun", "restart")
RUN_EVENTS = (*REOPENING_ACTIONS, "pause", "resume", "terminate")
"""Actions whose success is known only when the run ends."""
FAILED_AGAIN = "FAILED_AGAIN"
"""Result of a run that an operation reopened and that did not succeed."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """Current state of a run: the failed task and its reason if it did not succeed, and the group of the failure."""

    status: str
    task: str = ""
    reason: str = ""
    group_id: int | None = None

    @property
    def is_open(self) -> bool:
        return self.status in RUN.open

    @property
    def has_failed(self) -> bool:
        return self.status in UNSUCCESSFUL_STATUSES


def run_results(items: Iterable[BulkItem], readable: QuerySet[Run] | None = None) -> dict[str, RunResult]:
    """Return the state of each run that an operation was applied to, by run id. Runs at most three queries.

    Runs that have been removed are missing, and those that the actor may not see. `readable`: the runs that the actor
    may see, where there is no actor any more, in a download.
    """
    ids = [item.run_id for item in items if item.outcome == BulkItem.DONE]
    shown = visible(Run.objects.all()) if readable is None else readable
    runs = list(shown.filter(pk__in=ids).only("status", "reason", "failed_attempt_id")) if ids else []
    failed = [run for run in runs if run.status in UNSUCCESSFUL_STATUSES]
    reasons, groups = failure_reasons(failed), _groups_of_failures(failed)
    results = {run.pk: RunResult(run.status) for run in runs}
    for run in failed:
        task, reason = reasons.get(run.pk, ("", informative_line(run.reason)))
        results[run.pk] = RunResult(run.status, task, reason, groups.get(run.pk))
    return results


def _groups_of_failures(runs: Iterable[Run]) -> dict[str, int]:
    """Return the failure group of the failed attempt of each run, by run id."""
    attempts = {run.pk: run.failed_attempt_id for run in runs}
    if not attempts:
        return {}
    failures = Failure.objects.filter(run_id__in=list(attempts), attempt_id__in=list(attempts.values()))
    rows = failures.exclude(group=None).values_list("run_id", "group_id", "group__merged_into_id")
    return {run_id: merged_into or group_id for run_id, group_id, merged_into in rows.order_by("pk")}


def failed_again(operation: BulkOperation) -> QuerySet[BulkItem]:
    """Return the items whose runs did not succeed afterwards, among the examined ones."""
    if operation.action not in REOPENING_ACTIONS:
        return BulkItem.objects.none()
    failed = Run.objects.filter(pk=OuterRef("run_id"), status__in=UNSUCCESSFUL_STATUSES)
    return operation.items.filter(Exists(failed), pk__in=examined_items(operation.pk).values("pk"))


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """What became of the runs of an operation that reopens them.

    `pending`: runs that it has not handled yet or that are open. `succeeded`: the other runs that it was applied to.
    """

    succeeded: int
    failed_again: int
    pending: int


def outcome_of(operation: BulkOperation) -> BulkOutcome | None:
    """Return what became of the runs, or None if success of the action does not depend on them. Runs one query."""
    if operation.action not in REOPENING_ACTIONS:
        return None
    runs = Run.objects.filter(pk__in=examined_items(operation.pk).values("run_id")).order_by()
    return _outcome(operation, dict(runs.values_list("status").annotate(Count("pk"))) if operation.done else {})


def outcomes_of(operations: Iterable[BulkOperation]) -> dict[str, BulkOutcome]:
    """Return what became of the runs of operations, by operation id. Runs one query.

    It examines at most MAX_EXAMINED runs: an operation whose runs exceed the rest is missing, like those whose success
    does not depend on the runs.
    """
    counted, left = {}, MAX_EXAMINED
    for operation in operations:
        if operation.action in REOPENING_ACTIONS and operation.done <= left:
            counted[operation.pk] = operation
            left -= operation.done
    counts: dict[str, Counter[str]] = {pk: Counter() for pk in counted}
    if left < MAX_EXAMINED:
        items = BulkItem.objects.filter(operation__in=list(counted), outcome=BulkItem.DONE).order_by()
        status = Subquery(Run.objects.filter(pk=OuterRef("run_id")).values("status"))
        for pk, found, count in (
            items.annotate(status=status).values_list("operation_id", "status").annotate(Count("pk"))
        ):
            counts[pk][found] = count
    return {pk: _outcome(operation, counts[pk]) for pk, operation in counted.items()}


def _outcome(operation: BulkOperation, counts: Mapping[str, int]) -> BulkOutcome:
    """Return what became of the runs of an operation, from the number of runs in each status."""
    failed = sum(counts.get(status, 0) for status in UNSUCCESSFUL_STATUSES)
    still_open = sum(count for status, count in counts.items() if status in RUN.open)
    return BulkOutcome(operation.done - failed - still_open, failed, operation.remaining_count + still_open)


MAX_REPAIRS = 50
"""Operations since the first failure of a group that are searched for those on its runs."""


@dataclass(slots=True)
class Repairs:
    """What became of runs with a failure.

    `failed`: those that are failed. `otherwise`: those that another cause has ended since. `terminated`, `pending`:
    those that an operator ended, and those that are open. `by_hand`: those that completed after an operator had
    reopened them. `by_policy`: those that completed by themselves, by a retry or another path. `operations`: the bulk
    operations that reopened some of the runs last, newest first, each with the number of runs that completed after it.
    """

    total: int = 0
    failed: int = 0
    otherwise: int = 0
    terminated: int = 0
    pending: int = 0
    by_hand: int = 0
    by_policy: int = 0
    operations: dict[BulkOperation, int] = field(default_factory=dict)

    @property
    def by_operations(self) -> int:
        return sum(self.operations.values())


def repairs_of(group: FailureGroup, failed_at: Mapping[str, int]) -> Repairs:
    """Return what became of the runs of a group, given the time of the newest failure of each.

    Runs one query, two with operations.

    Runs that have been removed are not counted.
    """
    found = Repairs()
    if not failed_at:
        return found
    reopening = visible_operations().filter(action__in=REOPENING_ACTIONS, created_at__gte=min(failed_at.values()))
    newest = reopening.order_by("-created_at").values("pk")[:MAX_REPAIRS]
    items = BulkItem.objects.filter(operation__in=newest, run_id=OuterRef("pk"), outcome=BulkItem.DONE).order_by("-at")
    ended_by = selections.failure_that_ended()
    runs = visible(Run.objects.filter(pk__in=list(failed_at))).annotate(
        reopened_by=Subquery(items.values("operation")[:1]),
        reopened_at=Subquery(items.values("at")[:1]),
        ended_by=Subquery(ended_by.values("group")[:1]),
        ended_by_whole=Subquery(ended_by.values("group__merged_into")[:1]),
    )
    completed, attempted = Counter[str](), set[str]()
    columns = ("pk", "status", "created_at", "last_retried_at", "reopened_by", "reopened_at")
    for run_id, status, created_at, last_retried_at, operation, reopened_at, *ended in runs.values_list(
        *columns, "ended_by", "ended_by_whole"
    ):
        is_reopened = reopened_at is not None and reopened_at >= failed_at[run_id]
        if operation:
            attempted.add(operation)
        found.total += 1
        if status in UNSUCCESSFUL_STATUSES and any(ended) and group.pk not in ended:
            found.otherwise += 1
        elif status in UNSUCCESSFUL_STATUSES:
            found.failed += 1
        elif status in RUN.open:
            found.pending += 1
        elif status == TERMINATED:
            found.terminated += 1
        elif is_reopened:
            completed[operation] += 1
        elif max(created_at, last_retried_at) >= failed_at[run_id]:
            found.by_hand += 1
        else:
            found.by_policy += 1
    rows = BulkOperation.objects.filter(pk__in=attempted).order_by("-created_at") if attempted else ()
    found.operations = {row: completed[row.pk] for row in rows}
    return found


ACTION_LABELS = {
    "retry": gettext_lazy("Retry"),
    "rerun": gettext_lazy("Rerun"),
    "restart": gettext_lazy("Restart"),
    "pause": gettext_lazy("Pause"),
    "resume": gettext_lazy("Resume"),
    "terminate": gettext_lazy("Terminate"),
    "upgrade": gettext_lazy("Upgrade"),
    "label": gettext_lazy("Add labels"),
    "unlabel": gettext_lazy("Remove labels"),
}
