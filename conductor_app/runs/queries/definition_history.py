"""The runs of one workflow over time, by result, and the states of its steps in its newest runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Min, Q

from ...core.definition import type_of, walk
from ...utils.formatting import TimeRange, count_by_bar
from ..models import Run, Task
from .recent import RecentRun

MAX_COUNTED = 200_000
RESULTS = {"COMPLETED": "completed", "FAILED": "failed", "TIMED_OUT": "failed", "TERMINATED": "terminated"}
OPEN = "open"
MAX_STEPS = 60
MAX_TASKS = 10_000
"""Tasks that are read. Of runs with more, only the tasks outside of loops are read."""
SEVERITY = ("FAILED", "TIMED_OUT", "CANCELED", "COMPLETED_WITH_ERRORS", "ACTIVE", "BLOCKED", "COMPLETED", "SKIPPED")
"""A cell shows the first of these states that a task of the step has."""


def runs_by_result(name: str, time_range: TimeRange) -> tuple[dict[str, list[int]], bool]:
    """Return the runs started in each bar of a range, by result, and True if only the newest were counted.

    Runs one query, which the index of the definition's runs covers.
    """
    inside = {"created_at__gte": time_range.since, "created_at__lt": time_range.until}
    newest = Run.objects.of_definition(name).filter(**inside).order_by("-created_at")
    counts = {result: [0] * time_range.count for result in (*dict.fromkeys(RESULTS.values()), OPEN)}
    counted = 0
    for place, status, count in count_by_bar(
        newest.values("created_at", "status")[:MAX_COUNTED], time_range, ["status"]
    ):
        counts[RESULTS.get(status, OPEN)][place] += count
        counted += count
    return counts, counted >= MAX_COUNTED


@dataclass(frozen=True, slots=True)
class StepCell:
    """The state of one step in one run. `task`: the name of a task with the state; `count`: number of iterations."""

    run: RecentRun
    status: str = ""
    task: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step with its cells, oldest run first."""

    ref: str
    type: str
    cells: list[StepCell]


@dataclass(frozen=True, slots=True)
class StepGrid:
    """The steps of a workflow in its newest runs. `steps`: number of steps, of which MAX_STEPS at most have rows."""

    runs: Sequence[RecentRun]
    rows: list[StepRow]
    steps: int

    @property
    def is_cut(self) -> bool:
        return self.steps > len(self.rows)


def step_grid(document: dict[str, Any], runs: Sequence[RecentRun]) -> StepGrid:
    """Return the states of the steps in these runs. Runs one query."""
    spots = list({spot.ref: spot for spot in walk(document.get("tasks")) if spot.ref}.values())
    shown = spots[:MAX_STEPS]
    states = _worst_states([spot.ref for spot in shown], runs)
    rows = [
        StepRow(spot.ref, type_of(spot.step), [states.get((run.id, spot.ref), StepCell(run)) for run in runs])
        for spot in shown
    ]
    return StepGrid(runs, rows, len(spots))


def _worst_states(refs: Sequence[str], runs: Sequence[RecentRun]) -> dict[tuple[str, str], StepCell]:
    by_id = {run.id: run for run in runs}
    cells: dict[tuple[str, str], StepCell] = {}
    found = Task.objects.filter(_bounded_tasks(runs), ref__in=refs).order_by()
    rows = found.values_list("run_id", "ref", "status").annotate(count=Count("pk"), path=Min("iteration_path"))
    totals: dict[tuple[str, str], int] = {}
    for run_id, ref, status, count, path in rows:
        place = run_id, ref
        totals[place] = totals.get(place, 0) + count
        task = "__".join([ref, *filter(None, path.split("."))])
        if place not in cells or _rank(status) < _rank(cells[place].status):
            cells[place] = StepCell(by_id[run_id], status, task)
    return {place: StepCell(cell.run, cell.status, cell.task, totals[place]) for place, cell in cells.items()}


def _bounded_tasks(runs: Iterable[RecentRun]) -> Q:
    small: list[str] = []
    large: list[str] = []
    read = 0
    for run in sorted(runs, key=lambda run: run.next_seq):
        read += run.next_seq
        (small if read <= MAX_TASKS else large).append(run.id)
    return Q(run__in=small) | Q(run__in=large, iteration_path="")


def _rank(status: str) -> int:
    return SEVERITY.index(status) if status in SEVERITY else 0
