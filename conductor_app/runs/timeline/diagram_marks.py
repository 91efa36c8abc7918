"""State of the steps of a definition in a run: one mark per step.

Choice of the iterations that a diagram of a run shows, and the links that change it.

The address names the iteration of each chosen loop, outermost first: `pages:3,retries:2`. A loop inside another one has
a choice only together with it, because its iterations begin again in each iteration of the other.

Collapsed steps and branches of a diagram: those that are collapsed in the timeline of the same run.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Case, Count, F, Q, QuerySet, When, Window
from django.db.models.functions import RowNumber

from ...core.definition import MAX_DEPTH, Document, Flow, bodies_of, references_inside, structure_of, structure_of_step
from ...db.fields import DocumentField
from ...utils import clock
from ..models import Attempt, Run
from .tree import TreeNode

GOOD_ENDS = frozenset(("COMPLETED", "COMPLETED_WITH_ERRORS", "SKIPPED"))
MAX_DETAILS = 2_000
"""Steps of which the newest attempt is read."""
COLUMNS = ("id", "number", "status", "queue", "scheduled_at", "started_at", "ended_at", "worker")


@dataclass(frozen=True, slots=True)
class StepMark:
    """State of one step: the status of its newest task, its number of tasks, and its last iteration if it is a loop.

    `total`: number of iterations of the loop, 0 if unknown; `status_text`: text to show instead of the status;
    `iteration_path`: that of the newest task. The remaining fields are those of its newest attempt. `queue_status`:
    PENDING or LEASED, if it is open and has a queue; `duration_ms`: since its start, or since it was scheduled;
    `value`: the value that selected a case.
    """

    status: str
    count: int = 1
    last_iteration: int = 0
    total: int = 0
    status_text: str = ""
    iteration_path: str = ""
    queue_status: str = ""
    duration_ms: int = 0
    attempts: int = 1
    worker: str = ""
    value: str = ""

    @property
    def has_passed(self) -> bool:
        return self.status in GOOD_ENDS


@dataclass(frozen=True, slots=True)
class StepMarks:
    """Marks by step reference.

    `forked`: number of dynamic branches by status, by the reference of the join after the fork; `is_run`: False if the
    diagram shows a definition without a run, so that steps without a mark are not drawn faint.
    """

    marks: Mapping[str, StepMark] = field(default_factory=dict)
    forked: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    is_run: bool = True

    def get(self, ref: str) -> StepMark | None:
        return self.marks.get(ref)

    @classmethod
    def from_tasks(cls, tasks: Iterable[Any]) -> "StepMarks":
        """Build marks from tasks, oldest first. A task is any object with `ref`, `status` and `iteration`."""
        marks: dict[str, StepMark] = {}
        for task in tasks:
            before = marks.get(task.ref)
            marks[task.ref] = StepMark(task.status, before.count + 1 if before else 1, task.iteration)
        return cls(marks)


NO_MARKS = StepMarks(is_run=False)


@dataclass(frozen=True, slots=True)
class IterationFilter:
    """The tasks of some steps in one iteration. `prefix`: the start of their iteration paths."""

    refs: Collection[str]
    prefix: str

    def tasks(self, field: str = "ref") -> Q:
        """Return the condition that omits the other iterations of the steps. `field`: the column with the reference."""
        is_chosen = Q(iteration_path=self.prefix) | Q(iteration_path__startswith=f"{self.prefix}.")
        return is_chosen | ~Q(**{f"{field}__in": self.refs})

    def includes(self, ref: str, path: str) -> bool:
        """Return True for a task of the iteration, and for those of other steps. `path`: its iteration path."""
        return ref not in self.refs or path == self.prefix or path.startswith(f"{self.prefix}.")


def marks_of_tree(root: TreeNode, filters: Collection[IterationFilter] = ()) -> StepMarks:
    """Return the marks of the tasks in a tree, such as that of an earlier revision, in the chosen iterations.

    The tree knows no workers, attempts or outputs.
    """
    marks: dict[str, StepMark] = {}
    newest: dict[str, int] = {}
    forked: dict[str, dict[str, int]] = {}
    for node in root.walk():
        span = node.span
        if span is None:
            continue
        path = ".".join(span.iteration_path)
        if span.branch_head:
            if span.joined_by and all(each.includes(span.joined_by, path) for each in filters):
                counts = forked.setdefault(span.joined_by, {})
                counts[span.status] = counts.get(span.status, 0) + 1
        elif all(each.includes(span.ref, path) for each in filters):
            count = marks[span.ref].count + 1 if span.ref in marks else 1
            if newest.get(span.ref, -1) < span.seq:
                newest[span.ref] = span.seq
                marks[span.ref] = StepMark(
                    span.status, count, node.last_iteration, iteration_path=path, duration_ms=span.duration_ms
                )
            marks[span.ref] = replace(marks[span.ref], count=count)
    return StepMarks(marks, forked)


def marks_of_run(run: Run, filters: Collection[IterationFilter] = ()) -> StepMarks:
    """Return the marks of a run, in the chosen iterations.

    Runs up to three queries. Their results do not grow with the iterations of loops.
    """
    marks: dict[str, StepMark] = {}
    attempts: dict[str, str] = {}
    flows: dict[str, Flow] = {}
    for task in _newest_tasks(run, filters):
        marks[task["ref"]] = StepMark(
            task["status"], task["count"], task["iteration"], iteration_path=task["iteration_path"]
        )
        attempts[task["attempt_id"]] = task["ref"]
        flows[task["attempt_id"]] = structure_of(task["type"]).flow
    choices = [id for id, flow in flows.items() if flow is Flow.CHOICE]
    for row in _newest_attempts(list(attempts)[:MAX_DETAILS], choices[:MAX_DETAILS]):
        ref = attempts[row["id"]]
        marks[ref] = _add_attempt(marks[ref], row)
    return StepMarks(marks, _branches_by_join(run, filters) if Flow.DYNAMIC_FORK in flows.values() else {})


def _newest_tasks(run: Run, filters: Iterable[IterationFilter]) -> QuerySet:
    """Return the newest task of each step, with the number of its tasks."""
    tasks = run.tasks.filter(*(each.tasks() for each in filters), branch_head="")
    by_ref = [F("ref")]
    newest = tasks.annotate(
        place=Window(RowNumber(), partition_by=by_ref, order_by=F("seq").desc()),
        count=Window(Count("pk"), partition_by=by_ref),
    ).filter(place=1)
    return newest.values("ref", "type", "status", "attempt_id", "count", "iteration", "iteration_path")


def _newest_attempts(ids: Collection[str], choices: Collection[str]) -> QuerySet:
    """Return the attempts, those in `choices` with their output."""
    is_choice = When(pk__in=choices, output_path="", then=F("output"))
    return Attempt.objects.filter(pk__in=ids).values(*COLUMNS, value=Case(is_choice, output_field=DocumentField()))


def _add_attempt(mark: StepMark, row: Mapping[str, Any]) -> StepMark:
    begin = row["scheduled_at"] if row["started_at"] is None else row["started_at"]
    is_queued = row["ended_at"] is None and row["queue"]
    return replace(
        mark,
        queue_status=row["status"] if is_queued else "",
        duration_ms=max((clock.now() if row["ended_at"] is None else row["ended_at"]) - begin, 0),
        attempts=row["number"] + 1,
        worker=row["worker"],
        value=_chosen_value(row["value"]),
    )


def _chosen_value(output: Any) -> str:
    """Return the value that selected a case, from the output of the step."""
    values = output.get("evaluationResult") or output.get("caseOutput") if isinstance(output, dict) else None
    return values[0] if isinstance(values, list) and values and isinstance(values[0], str) else ""


def _branches_by_join(run: Run, filters: Iterable[IterationFilter]) -> dict[str, dict[str, int]]:
    """Return the number of dynamic branches by status, by the reference of their join."""
    heads = run.tasks.exclude(branch_head="").exclude(joined_by="").values_list("joined_by", "status")
    heads = heads.filter(*(each.tasks("joined_by") for each in filters))
    forked: dict[str, dict[str, int]] = {}
    for join, status, count in heads.annotate(count=Count("pk")).order_by("joined_by", "status"):
        forked.setdefault(join, {})[status] = count
    return forked


MAX_CHOSEN = 8
MAX_DIGITS = 9
ONLY_PASS = "1"
"""Component of the iteration path for the steps of one item: each item passes through its body once."""


@dataclass(frozen=True, slots=True)
class IterationPicker:
    """Links to iterations of a loop. `current`: the iteration shown, None for the newest state of each step.

    Empty addresses stand for links that lead nowhere.
    """

    loop: str
    total: int
    current: int | None
    previous: str
    next: str
    all: str


@dataclass(frozen=True, slots=True)
class IterationChoice:
    """The chosen iteration of each loop. `address`: returns the address of the page for another choice."""

    chosen: Mapping[str, int]
    address: Callable[[str], str]
    around: list[tuple[str, int]] = field(default_factory=list)
    """The loops around the step that is being laid out, with the iteration shown of each."""

    def picker(self, ref: str, total: int) -> IterationPicker | None:
        """Return the links for a loop, or None if it has only one iteration."""
        current = self.chosen.get(ref)
        if total < 2 and current is None:
            return None
        before = total if current is None else current - 1
        after = current + 1 if current is not None and current < total else 0
        outer = {loop: self.chosen[loop] for loop, _shown in self.around if loop in self.chosen}
        return IterationPicker(
            ref,
            total,
            current,
            self._address_of(ref, before) if before else "",
            self._address_of(ref, after) if after else "",
            "" if current is None else self.address(format_choice(outer)),
        )

    def _address_of(self, ref: str, number: int) -> str:
        return self.address(format_choice({**dict(self.around), ref: number}))


def parse_choice(text: str) -> dict[str, int]:
    """Return the iteration of each loop that an address names. Invalid parts are ignored."""
    found = {}
    for part in text.split(",")[:MAX_CHOSEN]:
        ref, _colon, number = part.rpartition(":")
        if ref and number.isascii() and number.isdecimal() and len(number) <= MAX_DIGITS and int(number):
            found[ref] = int(number)
    return found


def format_choice(chosen: Mapping[str, int]) -> str:
    return ",".join(f"{ref}:{number}" for ref, number in chosen.items())


def iteration_filters(document: Document, chosen: Mapping[str, int]) -> list[IterationFilter]:
    """Return the tasks of the chosen iterations. A loop is ignored unless all loops around it have a choice."""
    return list(_filters_inside(document.get("tasks"), (), chosen, 0)) if chosen else []


def _filters_inside(steps: Any, path: tuple[str, ...], chosen: Mapping[str, int], depth: int) -> Iterator[Any]:
    for step in steps if isinstance(steps, list) and depth < MAX_DEPTH else ():
        if not isinstance(step, Mapping):
            continue
        structure, ref = structure_of_step(step), str(step.get("taskReferenceName") or "")
        if structure.flow is Flow.LOOP and ref not in chosen:
            continue
        own = path
        if structure.flow is Flow.LOOP:
            own = (*path, str(chosen[ref]))
            yield IterationFilter(references_inside(step), ".".join(own))
            own = (*own, ONLY_PASS) if structure.item_type else own
        for body in bodies_of(step):
            phase = (str(body.phase),) if structure.flow is Flow.PHASES else ()
            yield from _filters_inside(body.steps, (*own, *phase), chosen, depth + 1)


@dataclass(frozen=True, slots=True)
class DiagramFolding:
    """The collapsed nodes of the run's tree, by id. `link`: returns the address that opens or closes one.

    It receives the id, and True if the node is open.
    """

    closed: frozenset[str]
    link: Callable[[str, bool], str]


def tree_id(ref: str, iteration_path: str, branch: int = 0) -> str:
    """Return the id of a task in the tree of its run, or that of one of its branches, counted from 1."""
    id = "__".join((ref, *iteration_path.split("."))) if iteration_path else ref
    return f"{id}/{branch}" if branch else id
