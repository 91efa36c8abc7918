"""Human tasks as the Human Tasks API defines them: their states, and the search for them.

A search is bounded: it scans the newest SEARCHED_ROWS tasks of each status, by index. A filter by assignee or display
name, and one that separates PENDING from ASSIGNED, reads at most MAX_READ of the tasks that match the other filters,
newest first. A page shows whether there may be more tasks.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import BooleanField, Case, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce, Greatest
from django.db.models.lookups import Exact

from ..core.errors import Invalid
from ..core.primitives import JsonValue
from ..core.step_types.waiting import Human
from ..runs.models import Attempt, Task
from ..runs.search.documents import STEP, DocumentCondition, parse_document_path
from ..runs.search.fields import contains_words
from .models import HumanTask
from .waiting_queries import MAX_READ_SIZE, HumanTaskView, human_task_view

PENDING, ASSIGNED, IN_PROGRESS = "PENDING", "ASSIGNED", "IN_PROGRESS"
COMPLETED, TIMED_OUT, DELETED = "COMPLETED", "TIMED_OUT", "DELETED"
STATES = (PENDING, ASSIGNED, IN_PROGRESS, COMPLETED, TIMED_OUT, DELETED)
OPEN_STATES = frozenset((PENDING, ASSIGNED, IN_PROGRESS))
STATUSES = {
    COMPLETED: ("COMPLETED", "COMPLETED_WITH_ERRORS"),
    TIMED_OUT: ("TIMED_OUT",),
    # The task ended without an answer: the run ended, or the task failed or was skipped.
    DELETED: ("CANCELED", "FAILED", "SKIPPED"),
}
"""Task statuses of each final state."""
OF_ATTEMPTS = {"COMPLETED": COMPLETED, "EXPIRED": TIMED_OUT}
SEARCHED_ROWS = 20_000
MAX_READ = 2_000
MAX_VALUES = 500
MAX_SHOWN = 100
"""Tasks on one page with their inputs and outputs. Larger pages are cut to this size."""
CLAUSE = re.compile(r"^\s*(?P<path>[\w$@-]+(?:\.[\w$@-]+|\[\d+\])*)\s*(?P<sign>=|>=|<=|>|<)\s*(?P<value>.+?)\s*$")


@dataclass(frozen=True, slots=True)
class UserFilter:
    """Filter by assignee or claimant. An empty `kind` matches any type of user."""

    name: str
    kind: str = ""

    def matches(self, name: str, kind: str) -> bool:
        return self.name in ("", name) and self.kind in ("", kind)


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """Filter by inbox: only tasks that this user has claimed or may claim."""

    name: str
    groups: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class HumanTaskFilter:
    """Filters of a search. Empty ones are ignored. Times are in epoch milliseconds."""

    states: tuple[str, ...] = ()
    assignees: tuple[UserFilter, ...] = ()
    claimants: tuple[UserFilter, ...] = ()
    definition_names: tuple[str, ...] = ()
    display_names: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()
    workflow_names: tuple[str, ...] = ()
    workflow_ids: tuple[str, ...] = ()
    input_query: str = ""
    output_query: str = ""
    words: str = ""
    updated_from: int = 0
    updated_to: int = 0
    inbox: InboxFilter | None = None


@dataclass(frozen=True, slots=True)
class HumanTaskPage:
    """One page of a search.

    `total` is a lower bound if `is_exact` is False. Tasks created before `since` were not scanned.
    """

    entries: list["HumanTaskEntry"]
    total: int
    is_exact: bool
    since: int | None


@dataclass(frozen=True, slots=True)
class HumanTaskEntry:
    """One human task, open or not."""

    task_view: HumanTaskView
    state: str
    updated_at: int
    updated_by: str


def human_task_entry(attempt: Attempt, input: Mapping[str, Any], saved: HumanTask | None, now: int) -> HumanTaskEntry:
    """Return the entry of one attempt at a HUMAN task. The attempt is loaded with `task` and `run`."""
    task_view, is_newest = human_task_view(attempt, input, saved, now), attempt.task.attempt_id == attempt.pk
    if is_newest and attempt.task.status == "ACTIVE" and attempt.ended_at is None:
        state = IN_PROGRESS if task_view.claimed_by else ASSIGNED if task_view.assignment.assignee else PENDING
    else:
        # The assignment at the end of the task, not the one that would apply now.
        task_view = human_task_view(attempt, input, saved, attempt.ended_at or now)
        closed = {status: state for state, statuses in STATUSES.items() for status in statuses}
        ended = closed.get(attempt.task.status) if is_newest else OF_ATTEMPTS.get(attempt.status)
        state = ended or DELETED
    moments = [attempt.scheduled_at, attempt.updated_at, attempt.ended_at, saved.changed_at if saved else None]
    by = saved.changed_by if saved else ""
    return HumanTaskEntry(task_view, state, max(each for each in moments if each is not None), by)


def search_human_tasks(
    rows: QuerySet[Attempt], task_filter: HumanTaskFilter, start: int, size: int, now: int
) -> HumanTaskPage:
    """Return one page of the human tasks among these attempts, newest first.

    `rows`: the attempts that the caller may see.

    Raises:
        Invalid: when a filter on the input or output is malformed.
    """
    tasks, since = _newest_window(task_filter)
    found = rows.filter(pk__in=tasks.values("attempt_id"))
    found = _filter_rows(found.select_related("task", "run"), task_filter)
    found = found.defer("input", "output", "task__step_state", "run__input", "run__output", "run__variables")
    found = found.order_by("-scheduled_at", "-id")
    if not _needs_payloads(task_filter):
        page = _add_payloads(_entries(found[start : start + size], now))
        return HumanTaskPage(page, found.count(), since is None, since)
    read = _entries(found[: MAX_READ + 1], now)
    hits = [each for each in read[:MAX_READ] if _matches(each, task_filter)]
    is_exact = since is None and len(read) <= MAX_READ
    if len(read) > MAX_READ:
        since = max(since or 0, read[MAX_READ - 1].task_view.attempt.scheduled_at)
    page = hits[start : start + size]
    return HumanTaskPage(_add_payloads(page) if size <= MAX_SHOWN else page, len(hits), is_exact, since)


def _add_payloads(entries: list[HumanTaskEntry]) -> list[HumanTaskEntry]:
    """Load the inputs and outputs of the attempts of one page, in one query."""
    attempts = {each.task_view.attempt.pk: each.task_view.attempt for each in entries}
    for pk, input, output in Attempt.objects.filter(pk__in=attempts).values_list("pk", "input", "output"):
        attempts[pk].input, attempts[pk].output = input, output
    return entries


def display_names(rows: QuerySet[Attempt], task_filter: HumanTaskFilter, now: int) -> list[str]:
    """Return the display names of the open tasks that the caller may see, sorted."""
    task_filter = replace(task_filter, states=tuple(sorted(OPEN_STATES)))
    found = search_human_tasks(rows, replace(task_filter, display_names=("*",)), 0, MAX_READ, now)
    return sorted({each.task_view.title for each in found.entries})


def _newest_window(task_filter: HumanTaskFilter) -> tuple[QuerySet[Task], int | None]:
    """Return the newest human tasks of the requested statuses, and the start of this window if older tasks exist."""
    tasks = Task.objects.filter(type=Human.type)
    statuses = _statuses(task_filter.states)
    if task_filter.workflow_ids:
        return tasks.filter(run__in=task_filter.workflow_ids, status__in=statuses), None
    if task_filter.claimants and all(each.name for each in task_filter.claimants):
        taken = HumanTask.objects.filter(claimed_by__in=[each.name for each in task_filter.claimants])
        newest = taken.order_by("-claimed_at")
        cut = newest.values_list("claimed_at", flat=True)[SEARCHED_ROWS : SEARCHED_ROWS + 1].first()
        return tasks.filter(pk__in=newest.values("pk")[:SEARCHED_ROWS], status__in=statuses), cut
    cuts: list[int] = []
    for status in statuses:
        created = tasks.filter(status=status).order_by("-created_at").values_list("created_at", flat=True)
        cuts += created[SEARCHED_ROWS : SEARCHED_ROWS + 1]
    since = max(cuts, default=None)
    found = tasks.filter(status__in=statuses)
    return (found if since is None else found.filter(created_at__gt=since)), since


def _statuses(states: Iterable[str]) -> list[str]:
    states = frozenset(states) or frozenset(STATES)
    found = ["ACTIVE"] if states & OPEN_STATES else []
    return found + [status for state, statuses in STATUSES.items() if state in states for status in statuses]


def _filter_rows(rows: QuerySet[Attempt], task_filter: HumanTaskFilter) -> QuerySet[Attempt]:
    """Apply the filters that the database can evaluate. No row that `_matches` accepts is lost."""
    states = frozenset(task_filter.states)
    for field, values in (
        ("task__ref__in", task_filter.refs),
        ("task__name__in", task_filter.definition_names),
        ("run__name__in", task_filter.workflow_names),
    ):
        if values:
            rows = rows.filter(**{field: values})
    saved = HumanTask.objects.filter(pk=OuterRef("task_id"))
    if states & OPEN_STATES and not states >= OPEN_STATES:
        is_taken = Exists(saved.exclude(claimed_by=""))
        if IN_PROGRESS not in states:
            rows = rows.exclude(Q(is_taken) & Q(task__status="ACTIVE"))
        elif not states & {PENDING, ASSIGNED}:
            rows = rows.filter(Q(is_taken) | ~Q(task__status="ACTIVE"))
    if task_filter.claimants:
        matches = Q()
        for each in task_filter.claimants:
            matches |= Q(claimed_by=each.name) if each.name else ~Q(claimed_by="")
        rows = rows.filter(Exists(saved.filter(matches)))
    if task_filter.assignees and all(each.name for each in task_filter.assignees):
        rows = rows.filter(_assignee_condition([each.name for each in task_filter.assignees], saved))
    if task_filter.updated_from or task_filter.updated_to:
        changed = Coalesce(saved.values("changed_at")[:1], Value(0))
        moments = (Coalesce(F(name), Value(0)) for name in ("updated_at", "ended_at"))
        rows = rows.alias(moved_at=Greatest(F("scheduled_at"), *moments, changed))
        if task_filter.updated_from:
            rows = rows.filter(moved_at__gte=task_filter.updated_from)
        if task_filter.updated_to:
            rows = rows.filter(moved_at__lte=task_filter.updated_to)
    for column, text in (("input", task_filter.input_query), ("output", task_filter.output_query)):
        if text:
            rows = rows.filter(document_condition(column, text))
    if task_filter.words:
        in_payloads = _contains_words("input", task_filter.words) | _contains_words("output", task_filter.words)
        in_names = Q(task__ref__icontains=task_filter.words) | Q(run__name__icontains=task_filter.words)
        rows = rows.filter(
            in_payloads
            | in_names
            | Q(
                Exists(
                    saved.filter(Q(assignee__icontains=task_filter.words) | Q(claimed_by__icontains=task_filter.words))
                )
            )
        )
    return rows


def document_condition(column: str, text: str) -> Q:
    """Return the condition of a query on a document.

    `text`: comparisons such as `customer.id = 42`, joined with AND, or words to find in the JSON text.

    Raises:
        Invalid: when a path is malformed.
    """
    clauses = [CLAUSE.match(part) for part in re.split(r"\s+AND\s+", text)]
    if not all(clauses):
        return _contains_words(column, text)
    found = Q(**{f"{column}_size__lte": MAX_READ_SIZE})
    for clause in clauses:
        assert clause is not None
        place = f".{clause['path']}"
        if len(STEP.sub("", place)):
            raise Invalid(f"Invalid path '{clause['path'][:100]}'. Write it as in customer.id or items[0].sku.")
        value = clause["value"].strip("'\"")
        found &= Q(
            Exact(
                _small_document_condition(
                    column, DocumentCondition(column, parse_document_path(place), clause["sign"], value)
                ),
                Value(True),
            )
        )
    return found


def _small_document_condition(column: str, condition: Any) -> Case:
    """Restrict a condition to documents that are small enough to be read for a list."""
    return Case(
        When(**{f"{column}_size__lte": MAX_READ_SIZE}, then=condition),
        default=Value(False),
        output_field=BooleanField(),
    )


def _contains_words(column: str, words: str) -> Q:
    return Q(Exact(_small_document_condition(column, contains_words(F(column), words)), Value(True)))


def _assignee_condition(names: Collection[str], saved: QuerySet[HumanTask]) -> Q:
    """Select the tasks whose definition or saved reassignment contains one of the names."""
    found = Q(Exists(saved.filter(assignee__in=names)))
    for name in names:
        part = _plain_part(name)
        found |= _contains_words("input", part) | Q(Exists(saved.filter(followers__contains=part)))
    return found


def _plain_part(name: str) -> str:
    """Return the longest part of a name that no JSON encoder escapes."""
    return max(re.split(r'["\\/\x00-\x1f\x7f-\U0010ffff]', name), key=len)


def _needs_payloads(task_filter: HumanTaskFilter) -> bool:
    """Return True if the filter depends on the inputs of the tasks."""
    states = frozenset(task_filter.states)
    splits = len(states & {PENDING, ASSIGNED}) == 1
    typed = any(each.kind for each in task_filter.claimants)
    return splits or typed or bool(task_filter.assignees or task_filter.display_names or task_filter.inbox)


def _entries(rows: Iterable[Attempt], now: int) -> list[HumanTaskEntry]:
    """Build the entries of these attempts, with the saved assignments and the inputs that are small enough."""
    attempts = list(rows)
    small = [each.pk for each in attempts if each.input_size <= MAX_READ_SIZE]
    inputs: dict[str, Any] = {}
    saved: dict[str, HumanTask] = {}
    for at in range(0, len(attempts), MAX_VALUES):
        part = attempts[at : at + MAX_VALUES]
        saved |= HumanTask.objects.in_bulk([each.task_id for each in part])
        inputs |= dict(Attempt.objects.filter(pk__in=small[at : at + MAX_VALUES]).values_list("pk", "input"))
    return [human_task_entry(each, _as_mapping(inputs.get(each.pk)), saved.get(each.task_id), now) for each in attempts]


def _as_mapping(value: JsonValue) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _matches(entry: HumanTaskEntry, task_filter: HumanTaskFilter) -> bool:
    """Return True if an entry passes the filters that the database does not evaluate."""
    task_view, to = entry.task_view, entry.task_view.assignment.assignee
    kind = "EXTERNAL_USER" if task_view.is_claimer_external else "CONDUCTOR_USER"
    return (
        (not task_filter.states or entry.state in task_filter.states)
        and (
            not task_filter.assignees
            or (to is not None and any(e.matches(to.who, to.user_type) for e in task_filter.assignees))
        )
        and (
            not task_filter.claimants or any(each.matches(task_view.claimed_by, kind) for each in task_filter.claimants)
        )
        and (
            not task_filter.display_names
            or task_view.title in task_filter.display_names
            or task_filter.display_names == ("*",)
        )
        and (task_filter.inbox is None or _is_in_inbox(task_filter.inbox, entry))
    )


def _is_in_inbox(inbox: InboxFilter, entry: HumanTaskEntry) -> bool:
    task_view, to = entry.task_view, entry.task_view.assignment.assignee
    if task_view.claimed_by or (to is not None and not to.is_group):
        return task_view.is_for_user(inbox.name)
    return entry.state in OPEN_STATES and (to is None or task_view.is_for_groups(inbox.groups))
