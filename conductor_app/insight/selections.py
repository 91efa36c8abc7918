"""Selections: a filter of runs as a document, so that it can be kept, shown in words, and asked again as one query."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q, QuerySet

from ..core.errors import Invalid
from ..core.states import RUN
from ..models import BulkItem, Failure, Run, WorkflowDefinition
from .search import RUNS, Question, Search

Selection = Mapping[str, Any]
LAST = "z" * 8
"""Sorts behind every character of an id, in the collations of both databases."""
MOST_IDS = 1_000


def runs(selection: Selection) -> QuerySet[Run]:
    """The runs of a selection. Raises Invalid where it names what there is not, or holds what cannot be read."""
    found = Run.objects.light()
    for name, value in checked(selection).items():
        found = FILTERS[name](found, value)
    return found


def checked(selection: Selection) -> dict[str, Any]:
    """The selection without what is empty; raises Invalid."""
    if unknown := sorted(selection.keys() - FILTERS.keys()):
        raise Invalid(f"Runs cannot be selected by {', '.join(unknown)}; only by: {', '.join(FILTERS)}.")
    said = {name: value for name, value in selection.items() if value not in (None, "", [], ())}
    for name, value in said.items():
        if not isinstance(value, TYPES.get(name, str)) or isinstance(value, bool):
            raise Invalid(f"{name} of a selection is {value!r}, which makes no sense.")
    return said


def in_words(selection: Selection) -> str:
    """The selection as a person would say it."""
    said = [WORDS[name](value) for name, value in checked(selection).items()]
    return "runs " + ", ".join(said) if said else "all runs"


def search(found: QuerySet[Run], term: str) -> QuerySet[Run]:
    """What a query finds, in the words of the API; else runs whose id begins like this; else those of this correlation
    id; else those of definitions named so. Raises Invalid where a query cannot be understood.

    One after another, and whatever else is asked for is asked afterwards: so one index answers each question.
    """
    if RUNS.speaks(term):
        return Search(found, Question(RUNS, term)).hits()
    by_id = Q(id__gte=term, id__lte=term + LAST, id__startswith=term)
    by_correlation = Q(correlation_id=term) & ~Q(correlation_id="")
    for question in (by_id, by_correlation):
        if Run.objects.filter(question).exists():
            return found.filter(question)
    names = WorkflowDefinition.objects.filter(name__icontains=term).order_by("name").values_list("name", flat=True)
    return found.filter(name__in={term, *names.distinct()[:20]})


def _ids(found: QuerySet[Run], ids: list[str]) -> QuerySet[Run]:
    if len(ids) > MOST_IDS:
        raise Invalid(f"A selection names {MOST_IDS} runs at most; select by what they have in common.")
    return found.filter(pk__in=[str(id) for id in ids])


def _statuses(found: QuerySet[Run], statuses: list[str]) -> QuerySet[Run]:
    if unknown := sorted({str(status) for status in statuses} - RUN.statuses):
        raise Invalid(f"There is no status {', '.join(unknown)[:100]} of runs.")
    return found.filter(status__in=statuses)


def _failure_group(found: QuerySet[Run], group: int) -> QuerySet[Run]:
    """Those that are in a bad way, and have had a failure of the group since they were opened last."""
    of_group = Failure.objects.filter(Q(group=group) | Q(group__merged_into=group))
    return found.filter(status__in=("FAILED", "TIMED_OUT", "TERMINATED"), pk__in=of_group.values("run_id"))


def _refused_of(found: QuerySet[Run], operation: str) -> QuerySet[Run]:
    return found.filter(pk__in=BulkItem.objects.filter(operation=operation, outcome="REFUSED").values("run_id"))


FILTERS: dict[str, Callable[[QuerySet[Run], Any], QuerySet[Run]]] = {
    "ids": _ids,
    "search": search,
    "definition": lambda found, name: found.of_definition(name),
    "version": lambda found, version: found.filter(version=version),
    "status": _statuses,
    "started_since": lambda found, moment: found.filter(created_at__gte=moment),
    "started_before": lambda found, moment: found.filter(created_at__lt=moment),
    "ended_since": lambda found, moment: found.filter(ended_at__gte=moment),
    "ended_before": lambda found, moment: found.filter(ended_at__lt=moment),
    "correlation_id": lambda found, id: found.filter(correlation_id=id).exclude(correlation_id=""),
    "parent": lambda found, id: found.filter(parent_id=id).exclude(parent_id=""),
    "started_by": lambda found, who: found.filter(started_by=who),
    "schedule": lambda found, name: found.filter(schedule=name),
    "failure_group": _failure_group,
    "refused_of": _refused_of,
}
"""Everything by which runs can be selected, each answered by an index or together with one that is."""
MOMENTS = ("started_since", "started_before", "ended_since", "ended_before")
TYPES: dict[str, type | tuple[type, ...]] = {
    "ids": (list, tuple),
    "status": (list, tuple),
    "version": int,
    "failure_group": int,
    **dict.fromkeys(MOMENTS, int),
}


def _moment(word: str) -> Callable[[int], str]:
    return lambda at: f"{word} {datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _listed(values: Iterable[Any]) -> str:
    return " or ".join(str(value) for value in values)


WORDS: dict[str, Callable[[Any], str]] = {
    "ids": lambda ids: f"chosen one by one ({len(ids)})",
    "search": lambda term: f"found by “{term}”",
    "definition": lambda name: f"of {name}",
    "version": lambda version: f"of version {version}",
    "status": lambda statuses: f"that are {_listed(statuses)}",
    "started_since": _moment("started since"),
    "started_before": _moment("started before"),
    "ended_since": _moment("ended since"),
    "ended_before": _moment("ended before"),
    "correlation_id": lambda id: f"with correlation id {id}",
    "parent": lambda id: f"started by run {id}",
    "started_by": lambda who: f"started by {who}",
    "schedule": lambda name: f"of schedule {name}",
    "failure_group": lambda group: f"that failed for the cause of group {group}",
    "refused_of": lambda operation: f"that were refused in operation {operation}",
}
