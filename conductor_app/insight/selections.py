"""Selections: a filter of runs as a document, so that it can be kept, shown in words, and asked again as one query."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from ..core.errors import Invalid
from ..core.states import RUN, TASK
from ..models import BulkItem, Failure, Run, Task, WorkflowDefinition
from .search import RUNS, Clause, Question, Search, Value
from .spans import span

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


def _asked(field: str, operator: str = "=") -> Callable[[QuerySet[Run], str], QuerySet[Run]]:
    """A filter in the language of searches, which bounds what no index answers."""

    def found(rows: QuerySet[Run], text: str) -> QuerySet[Run]:
        return Search(rows, Question(RUNS, also=[Clause(field, operator, (Value(text, 0),), 0)])).hits()

    return found


def _reason(rows: QuerySet[Run], text: str) -> QuerySet[Run]:
    """Words of the reason, of the newest that have one."""
    return _newest(rows.exclude(reason=""), REASONS).filter(reason__icontains=text)


def _inside(rows: QuerySet[Run], said: str) -> QuerySet[Run]:
    """`input.customer.id=42`: a place inside the input or the output, and the value there."""
    path, sign, value = said.partition("=")
    path = path.strip()
    if not sign or not path.startswith(("input.", "output.", "variables.", "input[", "output[", "variables[")):
        raise Invalid("A value inside a document is asked for like this: input.customer.id=42")
    return _asked(path)(rows, value.strip())


def _took(operator: str) -> Callable[[QuerySet[Run], int], QuerySet[Run]]:
    def found(rows: QuerySet[Run], span: int) -> QuerySet[Run]:
        took = {f"ended_at__{operator}": F("created_at") + span}
        return _newest(rows.filter(ended_at__isnull=False), LOOKED_AT).filter(**took)

    return found


def _task(rows: QuerySet[Run], ref: str) -> QuerySet[Run]:
    """With a task of this reference, in a status behind a colon: `charge`, `charge:FAILED`."""
    name, _, status = ref.partition(":")
    tasks = Task.objects.filter(run_id=OuterRef("pk"), ref=name)
    if status:
        if status not in TASK.statuses:
            raise Invalid(f"There is no status {status[:40]} of tasks; there are: {', '.join(sorted(TASK.statuses))}.")
        tasks = tasks.filter(status=status)
    return _newest(rows, LOOKED_AT).filter(Exists(tasks))


def _newest(rows: QuerySet[Run], number: int) -> QuerySet[Run]:
    """The newest of them: what has to be looked at one by one is bounded."""
    begun = rows.order_by("-created_at").values_list("created_at", flat=True)[number : number + 1].first()
    return rows if begun is None else rows.filter(created_at__gte=begun)


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
    "idempotency_key": lambda found, key: found.filter(idempotency_key=key),
    "least_ms": _took("gte"),
    "most_ms": _took("lte"),
    "task": _task,
    "error": _reason,
    "inside": _inside,
    "failure_group": _failure_group,
    "refused_of": _refused_of,
}
"""Everything by which runs can be selected: each answered by an index, or bounded to the newest runs."""
MOMENTS = ("started_since", "started_before", "ended_since", "ended_before")
TYPES: dict[str, type | tuple[type, ...]] = {
    "ids": (list, tuple),
    "status": (list, tuple),
    "version": int,
    "failure_group": int,
    **dict.fromkeys((*MOMENTS, "least_ms", "most_ms"), int),
}
LOOKED_AT, REASONS = 20_000, 10_000
"""How many of the newest runs are looked at one by one where no index knows."""


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
    "idempotency_key": lambda key: f"with idempotency key {key}",
    "least_ms": lambda took: f"that took at least {span(took)}",
    "most_ms": lambda took: f"that took at most {span(took)}",
    "task": lambda task: f"with a task {task.replace(':', ' that is ')}",
    "error": lambda text: f"whose error says “{text}”",
    "inside": lambda said: f"with {said}",
    "failure_group": lambda group: f"that failed for the cause of group {group}",
    "refused_of": lambda operation: f"that were refused in operation {operation}",
}
