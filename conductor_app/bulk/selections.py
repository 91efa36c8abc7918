"""Selections: filters of runs as documents, which can be saved, described in words and evaluated as one query.

Some filters have an index. The others scan the newest runs that those leave.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import and_
from typing import Any, cast

from django.db.models import BigIntegerField, Exists, F, OuterRef, Q, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast, Coalesce
from django.db.models.lookups import IContains
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..access.visibility import visible
from ..core.errors import Invalid
from ..core.failure_grouping import informative_line
from ..core.snapshot import NEVER
from ..core.states import RUN, TASK
from ..db.fields import LAST_ID_PART, dumps
from ..definitions.models import WorkflowDefinition
from ..failures.models import Failure, FailureGroup
from ..runs.models import Run, RunLabel, RunQuerySet, Task
from ..runs.queries.recent import MAX_INPUT_BYTES
from ..runs.search import RUNS, Clause, QueryValue, Search, SearchQuery
from ..utils.formatting import MINUTE, LazyText, format_duration
from .models import BulkItem

SEARCHED_ROWS, REASONS, SEARCHED_KEYS = 20_000, 10_000, 10_000
"""Maximum number of runs that a filter scans: in general, for the reason, and for the key."""


@dataclass(frozen=True, slots=True)
class ScannedRuns:
    """Matches among the newest `number` runs, created at `since` or later. `since` is None if all runs were scanned."""

    rows: RunQuerySet
    number: int
    since: int | None


def _scan_reason(rows: RunQuerySet, text: str) -> ScannedRuns:
    """Search the reason of the newest runs that have one."""
    return _scan_newest(rows.exclude(reason=""), REASONS, reason__icontains=text)


def _scan_newest(rows: RunQuerySet, number: int, *conditions: Any, **more: Any) -> ScannedRuns:
    newest = _newest_runs(rows, number)
    return ScannedRuns(newest.rows.filter(*conditions, **more), number, newest.since)


def _newest_runs(rows: RunQuerySet, number: int) -> ScannedRuns:
    since = rows.order_by("-created_at").values_list("created_at", flat=True)[number : number + 1].first()
    return ScannedRuns(rows if since is None else rows.filter(created_at__gte=since), number, since)


def _scan_document(rows: RunQuerySet, condition: str) -> ScannedRuns:
    """Search for a value at a path of a payload: `input.customer.id=42`."""
    path, sign, value = condition.partition("=")
    path = path.strip()
    if not sign or not path.startswith(("input.", "output.", "variables.", "input[", "output[", "variables[")):
        raise Invalid(f"Invalid condition '{condition[:100]}'. Write a path and a value, such as input.customer.id=42.")
    query = SearchQuery(RUNS, extra_clauses=[Clause(path, "=", (QueryValue(value.strip(), 0),), 0)])
    found_search = Search(rows, query)
    return ScannedRuns(cast("RunQuerySet", found_search.hits()), query.scan_limit or 0, found_search.since)


def _scan_duration(operator: str) -> Callable[[RunQuerySet, int], ScannedRuns]:
    def found(rows: RunQuerySet, span: int) -> ScannedRuns:
        # No filter on `ended_at` here: an index must find where the newest runs begin.
        return _scan_newest(rows, SEARCHED_ROWS, **{f"ended_at__{operator}": F("created_at") + F("idle_ms") + span})

    return found


def _scan_task(rows: RunQuerySet, ref: str) -> ScannedRuns:
    """Search for runs with a task reference, optionally in a status: `charge`, `charge:FAILED`."""
    name, _, status = ref.partition(":")
    tasks = Task.objects.filter(run_id=OuterRef("pk"), ref=name)
    if status:
        if status not in TASK.statuses:
            raise Invalid(f"Unknown task status: {status[:40]}. Use: {', '.join(sorted(TASK.statuses))}.")
        tasks = tasks.filter(status=status)
    return _scan_newest(rows, SEARCHED_ROWS, Exists(tasks))


SCANNING_FILTERS: dict[str, Callable[[RunQuerySet, Any], ScannedRuns]] = {
    "least_ms": _scan_duration("gte"),
    "most_ms": _scan_duration("lte"),
    "task": _scan_task,
    "error": _scan_reason,
    "inside": _scan_document,
}
MAX_IDS, MAX_ID_DIGITS, MAX_WORDS = 1_000, 19, 5
UNSUCCESSFUL_STATUSES = ("FAILED", "TIMED_OUT")
MAX_EXAMINED = 10_000
"""Maximum number of runs of an operation that are looked up afterwards."""


def search_runs(found: RunQuerySet, term: str) -> RunQuerySet | ScannedRuns:
    """Search runs by a query of the API, or by a term.

    A term is tried as the prefix of a run id, as a correlation id, and as part of a definition name. The first that
    matches is used. Each try is a separate query without the other filters, so that one index serves it. Otherwise the
    runs are those whose keys contain the term, as lists show them, or whose names and keys contain each word of it,
    among the newest.

    Raises:
        Invalid: when a query is malformed.
    """
    if RUNS.is_query(term):
        query = SearchQuery(RUNS, term)
        found_search = Search(found, query)
        return ScannedRuns(cast("RunQuerySet", found_search.hits()), query.scan_limit or 0, found_search.since)
    by_id = Q(id__gte=term, id__lte=term + LAST_ID_PART, id__startswith=term)
    by_correlation = Q(correlation_id=term) & ~Q(correlation_id="")
    for condition in (by_id, by_correlation):
        if visible(Run.objects.filter(condition)).exists():
            return found.filter(condition)
    names = WorkflowDefinition.objects.filter(name__icontains=term).order_by("name").values_list("name", flat=True)
    found_names = {term, *names.distinct()[:20]}
    if len(found_names) > 1 or visible(Run.objects.filter(name=term)).exists():
        return found.filter(name__in=found_names)
    return _scan_newest(found, SEARCHED_KEYS, shows_words(term))


def shows_words(term: str) -> Q:
    """Return the condition that the key of a run contains a term, or its name and key contain each word of it."""
    words, condition = term.split(), _has_key_with(term)
    if 1 < len(words) <= MAX_WORDS:
        condition |= reduce(and_, (Q(name__icontains=word) | _has_key_with(word) for word in words))
    return condition


def _has_key_with(term: str) -> Q:
    """Return the condition that a correlation id contains a term, or a small input of a run without one does.

    A list shows a number of the input with the name of its field: `orderId 4711`.
    """
    is_without_id = Q(correlation_id="", input_size__lte=MAX_INPUT_BYTES)
    field, _, number = term.rpartition(" ")
    name = field.rpartition(".")[2]
    texts = [(dumps(term) or "")[1:-1], *([f'"{name}":{number}'] if name and number.isdecimal() else [])]
    text_of_input = Cast("input", TextField())
    in_input = Q(*(Q(IContains(text_of_input, text)) for text in texts), _connector=Q.OR)
    return Q(correlation_id__icontains=term) | (is_without_id & in_input)


def _filter_ids(found: RunQuerySet, ids: list[str]) -> RunQuerySet:
    if len(ids) > MAX_IDS:
        raise Invalid(f"A selection can list at most {MAX_IDS} runs (got {len(ids)}). Use other filters instead.")
    return found.filter(pk__in=[str(id) for id in ids])


def _filter_statuses(found: RunQuerySet, statuses: list[str]) -> RunQuerySet:
    if unknown := sorted({str(status) for status in statuses} - RUN.statuses):
        raise Invalid(f"Unknown run status: {', '.join(unknown)[:100]}. Use: {', '.join(sorted(RUN.statuses))}.")
    return found.filter(status__in=statuses)


def _filter_failed_since(found: RunQuerySet, moment: int) -> RunQuerySet:
    """Select runs that failed or timed out since a moment, also those that were retried, rerun or restarted since."""
    ended = Run.objects.filter(status__in=UNSUCCESSFUL_STATUSES, ended_at__gte=moment).values("pk")
    reopened = Run.objects.filter(failed_before_at__gte=moment).values("pk")
    return found.filter(Q(pk__in=ended) | Q(pk__in=reopened))


def _filter_top_level(found: RunQuerySet, answer: str) -> RunQuerySet:
    if answer != "yes":
        raise Invalid(f"Invalid value of the filter top_level: {answer!r}. Use: yes.")
    return found.filter(parent_id="")


def _filter_retried(found: RunQuerySet, answer: str) -> RunQuerySet:
    """Select the runs that failed or timed out before they were opened again, or all others."""
    if answer not in ("yes", "no"):
        raise Invalid(f"Invalid value of the filter retried: {answer!r}. Use: yes, no.")
    return found.filter(failed_before_at__isnull=answer == "no")


def _filter_failure_groups(found: RunQuerySet, ids: Collection[int]) -> RunQuerySet:
    """Select failed, timed-out and terminated runs with a failure in a group, unless another failure ended them."""
    # A join with the groups would read the failures of all groups; SQLite reads the index of one for a list of ids.
    groups = FailureGroup.objects.filter(Q(pk__in=ids) | Q(merged_into__in=ids)).values("pk")
    of_group = Failure.objects.filter(group__in=groups)
    failed = found.filter(status__in=("FAILED", "TIMED_OUT", "TERMINATED"), pk__in=of_group.values("run_id"))
    ended_by = failed.alias(ended_by=Subquery(failure_that_ended().values("group")[:1]))
    return ended_by.filter(Q(ended_by__isnull=True) | Q(ended_by__in=groups))


def failure_that_ended() -> QuerySet[Failure]:
    """Return the grouped failures of the attempt that ended the run of an outer query, newest first."""
    own = Failure.objects.filter(run_id=OuterRef("pk"), attempt_id=OuterRef("failed_attempt_id"))
    return own.filter(group__isnull=False).exclude(attempt_id="").order_by("-pk")


def _parse_group_ids(text: str) -> list[int]:
    """Return the ids of failure groups in a text such as `3,7`."""
    ids = text.split(",")
    if not all(id.isdecimal() and len(id) < MAX_ID_DIGITS for id in ids) or len(ids) > MAX_IDS:
        raise Invalid(f"Not numbers of failure groups: {text[:40]!r}. Use a format such as 3,7.")
    return [int(id) for id in ids]


def _filter_refused(found: RunQuerySet, operation: str) -> RunQuerySet:
    return found.filter(pk__in=BulkItem.objects.filter(operation=operation, outcome="REFUSED").values("run_id"))


def _filter_failed_again(found: RunQuerySet, operation: str) -> RunQuerySet:
    return found.filter(pk__in=examined_items(operation).values("run_id"), status__in=UNSUCCESSFUL_STATUSES)


def examined_items(operation: str) -> QuerySet[BulkItem]:
    """Return the first MAX_EXAMINED items that were applied. Only their runs are looked up afterwards."""
    return BulkItem.objects.filter(operation=operation, outcome=BulkItem.DONE).order_by("number")[:MAX_EXAMINED]


def ended_between(selection: Mapping[str, Any]) -> RunQuerySet:
    """Return all runs that ended in the span of a selection, by the index on ends alone."""
    found = _readable_runs().order_by()
    for name in START_ORDER_FILTERS.keys() & selection.keys():
        found = INDEXED_FILTERS[name](found, selection[name])
    return found


def _unindexed_end(if_open: int) -> Coalesce:
    """Return the end of a run without use of its index, which would require sorting all matches by their start."""
    return Coalesce("ended_at", Value(if_open, BigIntegerField()))


INDEXED_FILTERS: dict[str, Callable[[RunQuerySet, Any], RunQuerySet]] = {
    "ids": _filter_ids,
    "definition": lambda found, name: found.of_definition(name),
    "version": lambda found, version: found.filter(version=version),
    "status": _filter_statuses,
    "started_since": lambda found, moment: found.filter(created_at__gte=moment),
    "started_before": lambda found, moment: found.filter(created_at__lt=moment),
    "ended_since": lambda found, moment: found.filter(ended_at__gte=moment),
    "ended_before": lambda found, moment: found.filter(ended_at__lt=moment),
    "failed_since": _filter_failed_since,
    "correlation_id": lambda found, id: found.filter(correlation_id=id).exclude(correlation_id=""),
    "label": lambda found, label: found.filter(pk__in=RunLabel.objects.filter(name=label).values("run_id")),
    "top_level": _filter_top_level,
    "retried": _filter_retried,
    "parent": lambda found, id: found.filter(parent_id=id).exclude(parent_id=""),
    "started_by": lambda found, who: found.filter(started_by=who),
    "schedule": lambda found, name: found.filter(schedule=name).exclude(schedule=""),
    "idempotency_key": lambda found, key: found.filter(idempotency_key=key),
    "failure_group": lambda found, id: _filter_failure_groups(found, [id]),
    "failure_groups": lambda found, ids: _filter_failure_groups(found, _parse_group_ids(ids)),
    "refused_of": _filter_refused,
    "failed_again_of": _filter_failed_again,
}
START_ORDER_FILTERS: dict[str, Callable[[RunQuerySet, int], RunQuerySet]] = {
    "ended_since": lambda found, moment: found.alias(end=_unindexed_end(0)).filter(end__gte=moment),
    "ended_before": lambda found, moment: found.alias(end=_unindexed_end(NEVER)).filter(
        end__lt=moment, created_at__lt=moment + MINUTE
    ),
}
"""Filters on the end for spans in which many runs ended: the rows are read in start order, newest first.

A run ends after its start. The clocks of two servers are assumed to differ by less than a minute.
"""
FAILURE_GROUP = "failure_group"
MAX_TITLE_LENGTH = 100


def describe(selection: Mapping[str, Any], group_titles: Mapping[int, str]) -> str:
    """Return the description of a selection, one part per filter.

    `group_titles`: the titles of its failure groups, by id.
    """
    conditions = ", ".join(_describe_filter(name, value, group_titles) for name, value in selection.items())
    return _("runs %(conditions)s") % {"conditions": conditions} if conditions else _("all runs")


def failure_group_titles(selections: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Return the titles of the failure groups that the selections name, by id. Runs one query, or none."""
    ids = {selection[FAILURE_GROUP] for selection in selections if FAILURE_GROUP in selection}
    groups = visible(FailureGroup.objects.filter(pk__in=ids)).only("message") if ids else ()
    return {group.pk: informative_line(group.title, MAX_TITLE_LENGTH) for group in groups}


def _describe_filter(name: str, value: Any, group_titles: Mapping[int, str]) -> str:
    title = group_titles.get(value) if name == FAILURE_GROUP else None
    return _("that failed with “%(title)s”") % {"title": title} if title else DESCRIPTIONS[name](value)


def _describe_value(sentence: str | LazyText) -> Callable[[Any], str]:
    return lambda value: sentence % {"value": value}


def _describe_time(sentence: str | LazyText) -> Callable[[int], str]:
    return lambda at: sentence % {"moment": f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"}


def _describe_duration(sentence: str | LazyText) -> Callable[[int], str]:
    return lambda took: sentence % {"span": format_duration(took)}


def _describe_statuses(statuses: Iterable[str]) -> str:
    return _("with status %(statuses)s") % {"statuses": _(" or ").join(map(str, statuses))}


def _describe_task(task: str) -> str:
    name, _colon, status = task.partition(":")
    if not status:
        return _("with task %(task)s") % {"task": name}
    return _("with task %(task)s in status %(status)s") % {"task": name, "status": status}


def _describe_ids(ids: list[str]) -> str:
    return _("selected individually (%(count)s)") % {"count": len(ids)}


DESCRIPTIONS: dict[str, Callable[[Any], str]] = {
    "ids": _describe_ids,
    "search": _describe_value(gettext_lazy("matching “%(value)s”")),
    "definition": _describe_value(gettext_lazy("of %(value)s")),
    "version": _describe_value(gettext_lazy("of version %(value)s")),
    "status": _describe_statuses,
    "started_since": _describe_time(gettext_lazy("started after %(moment)s")),
    "started_before": _describe_time(gettext_lazy("started before %(moment)s")),
    "ended_since": _describe_time(gettext_lazy("ended after %(moment)s")),
    "ended_before": _describe_time(gettext_lazy("ended before %(moment)s")),
    "failed_since": _describe_time(gettext_lazy("that failed after %(moment)s")),
    "correlation_id": _describe_value(gettext_lazy("with correlation id %(value)s")),
    "label": _describe_value(gettext_lazy("labeled %(value)s")),
    "top_level": lambda answer: _("without a parent run"),
    "retried": _describe_value(gettext_lazy("retried after a failure: %(value)s")),
    "parent": _describe_value(gettext_lazy("with parent run %(value)s")),
    "started_by": _describe_value(gettext_lazy("started by %(value)s")),
    "schedule": _describe_value(gettext_lazy("of schedule %(value)s")),
    "idempotency_key": _describe_value(gettext_lazy("with idempotency key %(value)s")),
    "least_ms": _describe_duration(gettext_lazy("that took at least %(span)s")),
    "most_ms": _describe_duration(gettext_lazy("that took at most %(span)s")),
    "task": _describe_task,
    "error": _describe_value(gettext_lazy("with error containing “%(value)s”")),
    "inside": _describe_value(gettext_lazy("where %(value)s")),
    FAILURE_GROUP: _describe_value(gettext_lazy("with failures in group %(value)s")),
    "failure_groups": _describe_value(gettext_lazy("with failures in the groups %(value)s")),
    "refused_of": _describe_value(gettext_lazy("rejected in bulk operation %(value)s")),
    "failed_again_of": _describe_value(gettext_lazy("that failed again after bulk operation %(value)s")),
}
Selection = Mapping[str, Any]
Filter = Callable[[RunQuerySet, Any], RunQuerySet | ScannedRuns]
FILTERS: dict[str, Filter] = {"search": search_runs, **INDEXED_FILTERS, **SCANNING_FILTERS}
"""All filters of runs. The scanning ones come last, so that the others leave fewer rows to scan."""
MOMENTS = ("started_since", "started_before", "ended_since", "ended_before", "failed_since")
MAX_INTEGER = 2**63 - 1
TYPES: dict[str, type | tuple[type, ...]] = {
    "ids": (list, tuple),
    "status": (list, tuple),
    "version": int,
    "failure_group": int,
    **dict.fromkeys((*MOMENTS, "least_ms", "most_ms"), int),
}


@dataclass(frozen=True, slots=True)
class ScanNote:
    """Range that a scanning filter has covered: the newest `number` runs, created at `since` or later."""

    filter: str
    number: int
    since: int


def selected_runs(selection: Selection) -> RunQuerySet:
    """Return the runs of a selection that the actor may see.

    Raises:
        Invalid: when a filter is unknown or has an invalid value.
    """
    return select_with_notes(selection)[0]


def select_with_notes(selection: Selection, by_start: bool = False) -> tuple[RunQuerySet, list[ScanNote]]:
    """Return the runs of a selection, and the ranges of the filters that have not scanned all runs.

    `by_start`: True if the caller reads the runs in the order of their starts, page by page.

    Raises:
        Invalid: when a filter is unknown or has an invalid value.
    """
    cleaned, rows, notes = clean_selection(selection), _readable_runs(), []
    filters = FILTERS | START_ORDER_FILTERS if _is_by_start(cleaned, by_start) else FILTERS
    for name in (name for name in filters if name in cleaned):
        found = filters[name](rows, cleaned[name])
        rows = found.rows if isinstance(found, ScannedRuns) else found
        if isinstance(found, ScannedRuns) and found.since is not None:
            notes.append(ScanNote(name, found.number, found.since))
    return rows, notes


def _readable_runs() -> RunQuerySet:
    return cast("RunQuerySet", visible(Run.objects.defer_payloads()))


def countable_runs(selection: Selection, found: RunQuerySet) -> RunQuerySet:
    """Return a query that counts the found runs efficiently: by the index on ends if only ends are filtered."""
    cleaned = clean_selection(selection)
    return (
        selected_runs(cleaned)
        if cleaned.keys() & START_ORDER_FILTERS.keys() and not cleaned.keys() & SCANNING_FILTERS.keys()
        else found
    )


def _is_by_start(cleaned: Selection, by_start: bool) -> bool:
    """Return True if enough runs ended in the span that reading them in start order is faster than sorting them."""
    if not (by_start or cleaned.keys() & SCANNING_FILTERS.keys()) or not cleaned.keys() & START_ORDER_FILTERS.keys():
        return False
    return ended_between(cleaned).values("ended_at")[: SEARCHED_ROWS + 1].count() > SEARCHED_ROWS


def clean_selection(selection: Selection) -> dict[str, Any]:
    """Return the selection without empty filters."""
    if unknown := sorted(selection.keys() - FILTERS.keys()):
        raise Invalid(f"Unknown filter: {', '.join(unknown)}. Use: {', '.join(FILTERS)}.")
    cleaned = {name: value for name, value in selection.items() if value not in (None, "", [], ())}
    for name, value in cleaned.items():
        is_too_large = isinstance(value, int) and abs(value) > MAX_INTEGER
        if not isinstance(value, TYPES.get(name, str)) or isinstance(value, bool) or is_too_large:
            raise Invalid(f"Invalid value of the filter {name}: {value!r}.")
    return cleaned


def describe_selection(selection: Selection, group_titles: Mapping[int, str] | None = None) -> str:
    """Return a selection as text. `group_titles`: the result of `failure_group_titles`, if it is known."""
    cleaned = clean_selection(selection)
    return describe(cleaned, failure_group_titles([cleaned]) if group_titles is None else group_titles)
