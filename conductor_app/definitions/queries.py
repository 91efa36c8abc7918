"""Catalogs of definitions: use, versions, activity, typical durations.

Versions of a workflow: author and change note, open runs, failures and durations.

Workflows that use a task, according to the newest versions of their definitions.

Catalog data of workflow definitions: health, use and lint flags, for one page of a list.

Catalog data of task definitions: their use, and flags for missing workers and timeouts.

Runs of one workflow over time, by result.

The states of a workflow's steps in its newest runs: a grid of steps and runs.

Typical durations of runs and steps, for comparison on the pages.

Definitions whose recent runs are slowest compared with their baseline.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from django.db.models import Count, Min, OuterRef, Q, Subquery
from django.utils.translation import gettext as _

from ..access.models import AuditEntry
from ..core.definition import structure_of, type_of, walk
from ..core.states import COMPLETED, RUN
from ..core.step_types.sub_workflows import StartWorkflow, SubWorkflow
from ..core.validation.findings import BROKEN, NO_TIMEOUT, NO_WORKER, LintContext
from ..core.validation.lint import lint_definition
from ..runs.models import Run, Task
from ..runs.queries.recent import RecentRun
from ..schedules.models import Schedule
from ..tasks.models import Poller
from ..utils.formatting import DAY, HOUR, SECOND, TimeRange, count_by_bar, format_duration
from .editor.queries import definition_context, named_workflows
from .editor.task_form import policy_of, time_limits
from .models import DurationBaseline, TaskDefinition, WorkflowDefinition

SAMPLE = 1_000
"""Newest runs of a workflow that the health of its versions is computed from."""
MAX_OPEN = 10_000
MAX_VERSIONS = 100
BAD_ENDS = ("FAILED", "TIMED_OUT")


@dataclass(frozen=True, slots=True)
class VersionHealth:
    """Results of the newest runs: how many ended and failed, and the 95th percentile of the duration."""

    runs: int = 0
    ended: int = 0
    failed: int = 0
    p95_ms: int | None = None

    @property
    def failure_percent(self) -> int | None:
        return round(100 * self.failed / self.ended) if self.ended else None


@dataclass(frozen=True, slots=True)
class VersionEntry:
    """One version with its change note, open runs and health."""

    row: WorkflowDefinition
    author: str
    reason: str
    at: int
    open_runs: int
    health: VersionHealth
    is_newest: bool


def version_history(name: str) -> list[VersionEntry]:
    """Return all versions of a workflow, newest first. Runs four queries."""
    rows = list(WorkflowDefinition.objects.filter(name=name).order_by("-version")[:MAX_VERSIONS])
    notes, open_counts, health = _change_notes(name), open_runs(name), health_by_version(name)
    return [_build_version_entry(row, notes, open_counts, health, place == 0) for place, row in enumerate(rows)]


def _build_version_entry(row, notes, open_counts, health, is_newest: bool) -> VersionEntry:
    author, reason = notes.get(f"{row.name}:{row.version}", (row.updated_by or row.created_by, ""))
    at = row.updated_at or row.created_at
    return VersionEntry(
        row, author, reason, at, open_counts.get(row.version, 0), health.get(row.version, VersionHealth()), is_newest
    )


def _change_notes(name: str) -> dict[str, tuple[str, str]]:
    """Return the last author and change note of each version."""
    entries = AuditEntry.objects.filter(
        object_type="workflow_definition", object_id__startswith=f"{name}:", action__in=("create", "overwrite")
    ).order_by("at", "pk")
    return {entry.object_id: (entry.actor, entry.reason) for entry in entries}


def open_runs(name: str) -> dict[int, int]:
    """Return the number of open runs of each version."""
    found = Run.objects.open().of_definition(name).order_by().values("version")[:MAX_OPEN]
    counts = Run.objects.filter(pk__in=found.values("pk")).values_list("version").annotate(Count("pk"))
    return dict(counts)


def health_by_version(name: str) -> dict[int, VersionHealth]:
    """Return the health of each version, from the newest runs."""
    rows = Run.objects.of_definition(name).order_by("-created_at")
    found: dict[int, list[tuple[str, int | None]]] = {}
    for version, status, started_at, ended in rows.values_list("version", "status", "created_at", "ended_at")[:SAMPLE]:
        found.setdefault(version, []).append((status, None if ended is None else ended - started_at))
    return {version: health_of_runs(runs) for version, runs in found.items()}


def health_of_runs(runs: Iterable[tuple[str, int | None]]) -> VersionHealth:
    """Return the health from status and duration of each run. The duration of an open run is None."""
    runs = list(runs)
    ended = [(status, duration_ms) for status, duration_ms in runs if status in RUN.final and duration_ms is not None]
    spans = sorted(duration_ms for status, duration_ms in ended if status == "COMPLETED")
    p95 = spans[min(int(len(spans) * 0.95), len(spans) - 1)] if spans else None
    return VersionHealth(len(runs), len(ended), sum(status in BAD_ENDS for status, _took in ended), p95)


LIMIT = 50


def newest_definitions():
    """Return the newest version of every workflow definition."""
    versions = WorkflowDefinition.objects.filter(name=OuterRef("name")).order_by("-version")
    return WorkflowDefinition.objects.filter(pk=Subquery(versions.values("pk")[:1]))


def workflows_using_task(name: str) -> list[WorkflowDefinition]:
    """Return the workflows whose steps name this task."""
    # The text search narrows the rows. Only the steps decide: a name may occur elsewhere in a document.
    rows = newest_definitions().filter(document__contains=name).order_by("name")[: 4 * LIMIT]
    return [row for row in rows if any(spot.name == name for spot in walk(row.document.get("tasks")))][:LIMIT]


MAX_RUNS = 5_000
MAX_USERS = 500
UNUSED_AFTER_MS = 30 * DAY


@dataclass(frozen=True, slots=True)
class CatalogWorkflow:
    """Catalog data of one workflow definition. `flags`: problems, each with an explanation."""

    health: VersionHealth = field(default_factory=VersionHealth)
    is_capped: bool = False
    used_by: int = 0
    reason: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)


def catalog_workflows(rows: Sequence[WorkflowDefinition], now: int) -> dict[int, CatalogWorkflow]:
    """Return the catalog data of each row. The number of queries does not grow with the rows."""
    known = definition_context([row.document for row in rows], with_examples=False)
    names = {row.name for row in rows}
    health, is_capped = _health_by_name(names, now)
    users, reasons, last = _count_callers(names), _change_reasons(rows), _last_run_times(rows)
    return {
        row.pk: CatalogWorkflow(
            health.get(row.name, VersionHealth()),
            is_capped,
            users.get(row.name, 0),
            reasons.get(f"{row.name}:{row.version}", ""),
            dict(_find_flags(row, known, users.get(row.name, 0), last.get(row.pk), now)),
        )
        for row in rows
    }


def _health_by_name(names: Iterable[str], now: int) -> tuple[dict[str, VersionHealth], bool]:
    """Return the health of each name from the newest runs of the last day, and True if not all runs were read."""
    found = Run.objects.filter(name__in=list(names), created_at__gte=now - DAY).order_by("-created_at")
    rows = list(found.values_list("name", "status", "created_at", "ended_at")[: MAX_RUNS + 1])
    by_name: dict[str, list[tuple[str, int | None]]] = {}
    for name, status, started_at, ended in rows[:MAX_RUNS]:
        by_name.setdefault(name, []).append((status, None if ended is None else ended - started_at))
    return {name: health_of_runs(runs) for name, runs in by_name.items()}, len(rows) > MAX_RUNS


def _count_callers(names: set[str]) -> dict[str, int]:
    """Count the workflows and schedules that start each workflow."""
    counts = dict.fromkeys(names, 0)
    callers = newest_definitions().filter(document__contains=SubWorkflow.type) | newest_definitions().filter(
        document__contains=StartWorkflow.type
    )
    for caller in callers[:MAX_USERS]:
        called = {name for spot in walk(caller.document.get("tasks")) for name in named_workflows(spot.step)}
        for name in called & names - {caller.name}:
            counts[name] += 1
    for name in Schedule.objects.filter(workflow_name__in=list(names)).values_list("workflow_name", flat=True):
        counts[name] += 1
    return counts


def _change_reasons(rows: Sequence[WorkflowDefinition]) -> dict[str, str]:
    ids = [f"{row.name}:{row.version}" for row in rows]
    entries = AuditEntry.objects.filter(object_type="workflow_definition", object_id__in=ids).order_by("at", "pk")
    return dict(entries.exclude(reason="").values_list("object_id", "reason"))


def _last_run_times(rows: Sequence[WorkflowDefinition]) -> dict[int, int | None]:
    """Return the creation time of the newest run of each definition."""
    runs = Run.objects.filter(name=OuterRef("name")).order_by("-created_at").values("created_at")[:1]
    found = WorkflowDefinition.objects.filter(pk__in=[row.pk for row in rows]).annotate(last_run_at=Subquery(runs))
    return dict(found.values_list("pk", "last_run_at"))


def _find_flags(
    row: WorkflowDefinition, known: LintContext, users: int, last: int | None, now: int
) -> Iterator[tuple[str, str]]:
    findings = lint_definition(row.document, known)
    broken = [finding.message for finding in findings if finding.kind in BROKEN and finding.severity != "hint"]
    if broken:
        yield "broken reference", broken[0]
    for kind, flag in ((NO_TIMEOUT, "no timeout"), (NO_WORKER, "no worker")):
        if messages := [finding.message for finding in findings if finding.kind == kind]:
            yield flag, messages[0]
    if not users and (last is None or now - last > UNUSED_AFTER_MS):
        never, lately = (
            _("No workflow or schedule starts it, and it has never run."),
            _("No workflow or schedule starts it, and it has not run for 30 days."),
        )
        yield "unused", never if last is None else lately


MAX_WORKFLOWS = 500


@dataclass(frozen=True, slots=True)
class CatalogTask:
    """Catalog data of one task definition. `flags`: problems, each with an explanation."""

    used_by: int = 0
    flags: Mapping[str, str] = field(default_factory=dict)


def catalog_tasks(rows: Sequence[TaskDefinition]) -> dict[int, CatalogTask]:
    """Return the catalog data of each row. The number of queries does not grow with the rows."""
    names = {row.name for row in rows}
    users, is_cut = _count_users(names)
    worked = set(Poller.objects.filter(task_type__in=names).values_list("task_type", flat=True))
    return {
        row.pk: CatalogTask(
            users[row.name], dict(_find_flags_task_catalog(row, users[row.name], row.name in worked, is_cut))
        )
        for row in rows
    }


def _count_users(names: set[str]) -> tuple[dict[str, int], bool]:
    """Count the workflows whose newest version uses each task. Return True if not all workflows were read."""
    counts = dict.fromkeys(names, 0)
    documents = list(newest_definitions().order_by("name").values_list("document", flat=True)[: MAX_WORKFLOWS + 1])
    for document in documents[:MAX_WORKFLOWS]:
        for name in {spot.name for spot in walk(document.get("tasks"))} & names:
            counts[name] += 1
    return counts, len(documents) > MAX_WORKFLOWS


def _find_flags_task_catalog(
    row: TaskDefinition, users: int, is_worked: bool, is_cut: bool
) -> Iterator[tuple[str, str]]:
    if users and not is_worked and not structure_of(row.name).is_built_in:
        yield "no worker", _("No worker has ever polled this task.")
    if not time_limits(policy_of(row.document)):
        yield "no timeout", _("No timeout: if a worker stops responding, the run waits forever.")
    if not users and not is_cut:
        yield "unused", _("No workflow uses this task in its newest version.")


MAX_COUNTED = 200_000
RESULTS = {"COMPLETED": "completed", "FAILED": "failed", "TIMED_OUT": "failed", "TERMINATED": "terminated"}
OPEN = "open"


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


MAX_STEPS = 60
MAX_TASKS = 10_000
"""Tasks that are read. Of runs with more, only the tasks outside of loops are read."""
SEVERITY = ("FAILED", "TIMED_OUT", "CANCELED", "COMPLETED_WITH_ERRORS", "ACTIVE", "BLOCKED", "COMPLETED", "SKIPPED")
"""A cell shows the first of these states that a task of the step has."""


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


ENOUGH = 3
"""Minimum number of samples for a baseline."""


@dataclass(frozen=True, slots=True)
class TypicalDuration:
    """Median and 95th percentile of a duration, in milliseconds."""

    count: int
    p50: int
    p95: int

    def __str__(self) -> str:
        return f"p50 {format_duration(self.p50)} · p95 {format_duration(self.p95)}"

    @property
    def sentence(self) -> str:
        facts = {"durations": self, "count": self.count}
        return _("typical duration: %(durations)s (%(count)s samples)") % facts

    def is_slow(self, duration_ms: int) -> bool:
        """Return True if a duration is well above the baseline."""
        return duration_ms > self.p95 and duration_ms > self.p50 * 2 and duration_ms - self.p50 > SECOND


def typical_step_durations(name: str, version: int) -> dict[str, TypicalDuration]:
    """Return the typical durations of a definition version, by step reference. The run itself has the reference ''."""
    rows = DurationBaseline.objects.filter(name=name, version=version, count__gte=ENOUGH)
    return {row.ref: TypicalDuration(row.count, row.p50_ms, row.p95_ms) for row in rows}


def typical_run_durations(runs: Iterable[Run]) -> dict[tuple[str, int], TypicalDuration]:
    """Return the typical run durations for the definitions of these runs. Runs one query."""
    wanted = {(run.name, run.version) for run in runs}
    if not wanted:
        return {}
    found = Q()
    for name, version in wanted:
        found |= Q(name=name, version=version)
    rows = DurationBaseline.objects.filter(found, ref="", count__gte=ENOUGH)
    return {(row.name, row.version): TypicalDuration(row.count, row.p50_ms, row.p95_ms) for row in rows}


SLOWEST_MAX_RUNS = 2_000
MAX_SHOWN = 6
FIELDS = ("name", "version", "status", "created_at", "ended_at")


@dataclass(frozen=True, slots=True)
class SlowDefinition:
    """One definition: median duration of its recent runs (`took`, in milliseconds), and its baseline."""

    name: str
    version: int
    runs: int
    took: int
    usual: TypicalDuration

    @property
    def factor(self) -> float:
        return self.took / max(self.usual.p50, 1)

    @property
    def is_slow(self) -> bool:
        return self.usual.is_slow(self.took)


def slowest_definitions(now: int) -> list[SlowDefinition]:
    """Return the definitions whose completed runs of the last hour are slowest compared with their baseline.

    Runs two queries. Failed runs do not count: their duration says nothing about the work.
    """
    # The query does not filter by status: SQLite would read every completed run and sort all of them by their end.
    newest = Run.objects.filter(ended_at__gt=now - HOUR).order_by("-ended_at")
    took: dict[tuple[str, int], list[int]] = defaultdict(list)
    for name, version, status, began, ended in newest.values_list(*FIELDS)[:SLOWEST_MAX_RUNS]:
        if status == COMPLETED:
            took[name, version].append(ended - began)
    rows = DurationBaseline.objects.filter(ref="", count__gte=ENOUGH, name__in={name for name, _ in took})
    found = [
        SlowDefinition(
            row.name, row.version, len(spent), round(median(spent)), TypicalDuration(row.count, row.p50_ms, row.p95_ms)
        )
        for row in rows
        if (spent := took.get((row.name, row.version)))
    ]
    return sorted(found, key=lambda each: -each.factor)[:MAX_SHOWN]
