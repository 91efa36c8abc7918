"""State of the steps of a definition in a run, and the tasks of the iterations that a diagram shows."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Case, Count, F, Q, QuerySet, When, Window
from django.db.models.functions import RowNumber

from ...core.definition import MAX_DEPTH, Document, Flow, bodies_of, references_inside, structure_of, structure_of_step
from ...core.primitives import JsonValue
from ...db.fields import DocumentField
from ...definitions.diagram.marks import StepMark, StepMarks
from ...utils import clock
from ..models import Attempt, Run
from .tree import WAITING_STEP_TYPES, shown_status

MAX_DETAILS = 2_000
"""Steps of which the newest attempt is read."""
COLUMNS = ("id", "number", "status", "queue", "scheduled_at", "started_at", "ended_at", "worker")


@dataclass(frozen=True, slots=True)
class IterationFilter:
    """The tasks of some steps in one iteration. `prefix`: the start of their iteration paths."""

    refs: Collection[str]
    prefix: str

    def tasks(self, field: str = "ref") -> Q:
        """Return the condition that omits the other iterations of the steps. `field`: the column with the reference."""
        is_chosen = Q(iteration_path=self.prefix) | Q(iteration_path__startswith=f"{self.prefix}.")
        return is_chosen | ~Q(**{f"{field}__in": self.refs})


def marks_of_run(run: Run, filters: Collection[IterationFilter] = ()) -> StepMarks:
    """Return the marks of a run, in the chosen iterations.

    Runs up to three queries. Their results do not grow with the iterations of loops.
    """
    marks: dict[str, StepMark] = {}
    attempts: dict[str, str] = {}
    flows: dict[str, Flow] = {}
    types: dict[str, str] = {}
    for task in _newest_tasks(run, filters):
        marks[task["ref"]] = StepMark(
            task["status"], task["count"], task["iteration"], iteration_path=task["iteration_path"]
        )
        attempts[task["attempt_id"]] = task["ref"]
        flows[task["attempt_id"]], types[task["ref"]] = structure_of(task["type"]).flow, task["type"]
    choices = [id for id, flow in flows.items() if flow is Flow.CHOICE]
    for row in _newest_attempts(list(attempts)[:MAX_DETAILS], choices[:MAX_DETAILS]):
        ref = attempts[row["id"]]
        marks[ref] = _add_attempt(marks[ref], row, types[ref])
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


def _add_attempt(mark: StepMark, row: Mapping[str, Any], type: str) -> StepMark:
    begin = row["scheduled_at"] if row["started_at"] is None else row["started_at"]
    is_open = row["ended_at"] is None and (row["queue"] or type in WAITING_STEP_TYPES)
    return replace(
        mark,
        queue_status=shown_status(type, row["status"]) if is_open else "",
        duration_ms=max((clock.now() if row["ended_at"] is None else row["ended_at"]) - begin, 0),
        attempts=row["number"] + 1,
        worker=row["worker"],
        value=_chosen_value(row["value"]),
    )


def _chosen_value(output: JsonValue) -> str:
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


ONLY_PASS = "1"
"""Component of the iteration path for the steps of one item: each item passes through its body once."""


def iteration_filters(document: Document, chosen: Mapping[str, int]) -> list[IterationFilter]:
    """Return the tasks of the chosen iterations. A loop is ignored unless all loops around it have a choice."""
    return list(_filters_inside(document.get("tasks"), (), chosen, 0)) if chosen else []


def _filters_inside(steps: JsonValue, path: tuple[str, ...], chosen: Mapping[str, int], depth: int) -> Iterator[Any]:
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
