"""Recent runs of workflows and schedules, their keys and inputs, and the results of one workflow over time."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Count, F, Min, Q, QuerySet, When

from ...access.visibility import visible
from ...core.definition import type_of, walk
from ...core.masking import REDACTED
from ...core.primitives import JsonValue
from ...core.states import COMPLETED
from ...db.database import connection
from ...db.fields import DocumentField
from ...utils.formatting import TimeRange, count_by_bar
from ..models import Attempt, HistoryEntry, Run, Task, run_duration_ms

MAX_KEY_LENGTH = 60
MAX_INPUT_BYTES = 4_000
"""Inputs larger than this are not read for a key."""
SHORT_ID_LENGTH = 4
MAX_KEYS = 1_000


@dataclass(frozen=True, slots=True)
class RunKey:
    """The key of a run. `field`: the path of the input value that it is; empty for a correlation id or a short id."""

    text: str
    field: str = ""


def short_id(id: str) -> str:
    """Return the end of an id. Ids begin with their time, so that those of one day look alike."""
    return f"…{id[-SHORT_ID_LENGTH:]}" if len(id) > SHORT_ID_LENGTH else id


def annotate_key_inputs(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Annotate runs with the inputs that `run_key` reads: small ones of runs without a correlation id."""
    is_needed = Q(correlation_id="", input_size__lte=MAX_INPUT_BYTES)
    return runs.annotate(key_input=Case(When(is_needed, then=F("input")), output_field=DocumentField(null=True)))


def run_key(run: Run) -> RunKey:
    """Return the correlation id of a run, or the first scalar value of its input, or the end of its id.

    A number is preceded by the name of its field, because it says little alone: `order 4711`.
    The input is read only if `annotate_key_inputs` has loaded it.
    """
    if run.correlation_id:
        return RunKey(_shorten(run.correlation_id))
    for path, value in _scalars(getattr(run, "key_input", None)):
        return RunKey(_shorten(value), path)
    return RunKey(short_id(run.pk))


def run_keys(ids: Iterable[str]) -> dict[str, RunKey]:
    """Return the keys of the runs with these ids that the actor may see, by id. Runs one query, or none without ids."""
    wanted = list(dict.fromkeys(id for id in ids if id))[:MAX_KEYS]
    if not wanted:
        return {}
    rows = annotate_key_inputs(visible(Run.objects.filter(pk__in=wanted)).only("id", "correlation_id"))
    return {run.pk: run_key(run) for run in rows}


def keys_of(runs: Collection[Run]) -> dict[str, RunKey]:
    """Return the keys of loaded runs, by id. Runs one query for those without a correlation id."""
    known = {run.pk: run_key(run) for run in runs if run.correlation_id}
    return known | run_keys(run.pk for run in runs if not run.correlation_id)


def _scalars(input: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield the paths and values of an input: first those of the upper level, then those one level below."""
    if not isinstance(input, Mapping):
        return
    public = [(name, value) for name, value in input.items() if not name.startswith("_")]
    for name, value in public:
        if text := _scalar_text(name, value):
            yield name, text
    for name, value in public:
        for inner, nested in value.items() if isinstance(value, Mapping) else ():
            if text := _scalar_text(inner, nested):
                yield f"{name}.{inner}", text


def _scalar_text(name: str, value: JsonValue) -> str:
    """Return a text or a number as text. Masked values, truth values and blank texts identify no run."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{name} {value}"
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return "" if REDACTED in text else text


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_KEY_LENGTH else f"{text[: MAX_KEY_LENGTH - 1]}…"


STRIP_LENGTH = 30
COLUMNS = ("id", "version", "status", "created_at", "ended_at", "idle_ms", "next_seq", "failed_before_at")


@dataclass(frozen=True, slots=True)
class RecentRun:
    """One run of a strip. `next_seq`: a bound of the number of its attempts."""

    id: str
    version: int
    status: str
    created_at: int
    ended_at: int | None
    idle_ms: int
    next_seq: int
    failed_before_at: int | None

    @property
    def is_repaired(self) -> bool:
        """True if it failed, was retried and has completed."""
        return self.failed_before_at is not None and self.status == COMPLETED

    def duration_ms(self, now: int) -> int:
        """Return the duration, until now if the run is open."""
        return run_duration_ms(self.created_at, self.ended_at, self.idle_ms, now)


def recent_runs_of_workflows(names: Sequence[str]) -> dict[str, list[RecentRun]]:
    """Return the newest runs of each workflow, oldest first. Runs one query, with one index look-up per name."""
    return _recent_runs("name", names)


def recent_runs_of_schedules(names: Sequence[str]) -> dict[str, list[RecentRun]]:
    """Return the newest runs of each schedule, oldest first. Runs one query, with one index look-up per name."""
    return _recent_runs("schedule", names)


def _recent_runs(column: str, names: Sequence[str]) -> dict[str, list[RecentRun]]:
    """Combine one limited query per name: a compound query may not contain limits, but subqueries of its parts may."""
    parts: list[str] = []
    params: list[str | int] = []
    runs = visible(Run.objects.all())
    for name in dict.fromkeys(filter(None, names)):
        # The second condition is that of the index.
        rows = runs.filter(Q(**{column: name}) & ~Q(**{column: ""})).order_by("-created_at")
        sql, values = rows.values_list(column, *COLUMNS)[:STRIP_LENGTH].query.sql_with_params()
        parts.append(f"SELECT * FROM ({sql}) AS newest")
        params += values
    found: dict[str, list[RecentRun]] = {}
    if parts:
        with connection.cursor() as cursor:
            cursor.execute(" UNION ALL ".join(parts), params)
            for name, *values in cursor.fetchall():
                found.setdefault(name, []).append(RecentRun(*values))
    return {name: sorted(runs, key=lambda run: (run.created_at, run.id)) for name, runs in found.items()}


MAX_RECENT = 5
MAX_COPIED_INPUT_BYTES = 64_000


@dataclass(frozen=True, slots=True)
class RecentStart:
    """A run whose start can be repeated."""

    run: Run
    input: JsonValue

    @property
    def has_input(self) -> bool:
        return self.input is not None


def recent_starts(name: str) -> list[Run]:
    """Return the newest runs of a workflow, without their payloads, and with the inputs that their keys need."""
    runs = annotate_key_inputs(visible(Run.objects.of_definition(name).defer_payloads()))
    return list(runs.order_by("-created_at")[:MAX_RECENT])


def start_to_repeat(name: str, run_id: str) -> RecentStart | None:
    """Return a run with its input, or None if there is no such run. An input too large for a form is None."""
    run = visible(Run.objects.of_definition(name).defer_payloads().filter(pk=run_id)).first()
    if run is None:
        return None
    is_small = run.input_size <= MAX_COPIED_INPUT_BYTES and not run.input_path
    return RecentStart(run, Run.objects.values_list("input", flat=True).get(pk=run_id) if is_small else None)


SEARCHED_ROWS = 20
"""Decisions that are searched, newest first."""


def last_transition(run_id: str, event: str) -> HistoryEntry | None:
    """Return the newest decision that applied this event to the run, or None."""
    entries = HistoryEntry.objects.filter(run_id=run_id).order_by("-revision")[:SEARCHED_ROWS]
    return next((entry for entry in entries if _has_transition(entry, event)), None)


def failure_workflow_ids(run: Run) -> list[str]:
    """Return the ids of the failure workflows that a run started at its last end and at the failure before it.

    Runs one query, or none if the run did not fail.
    """
    ends = [at for at in (run.ended_at, run.failed_before_at) if at is not None]
    if not ends or (run.status == "COMPLETED" and run.failed_before_at is None):
        return []
    starts = HistoryEntry.objects.filter(run_id=run.pk, at__in=ends, effects__contains='"StartRun"')
    lines = (line for entry in starts.order_by("revision") for line in entry.effects)
    return [line["run"] for line in lines if line.get("effect") == "StartRun"]


def failed_run_id(run: Run) -> str:
    """Return the id of the run whose failure started this one as its failure workflow, or an empty text.

    Runs one query, or none for a run that no other run started.
    """
    if run.started_by != "engine" or run.parent_id or not run.depth:
        return ""
    # Both are written in one decision, at one time.
    ended = Run.objects.filter(Q(ended_at=run.created_at) | Q(failed_before_at=run.created_at))
    starts = HistoryEntry.objects.filter(
        run_id__in=ended.values("pk"), at=run.created_at, effects__contains=f'"{run.pk}"'
    )
    return starts.values_list("run_id", flat=True).first() or ""


def _has_transition(entry: HistoryEntry, event: str) -> bool:
    return any(line.get("effect") == "TransitionRun" and line.get("event") == event for line in entry.effects)


MAX_COUNTED = 200_000
RESULTS = {"COMPLETED": "completed", "FAILED": "failed", "TIMED_OUT": "failed", "TERMINATED": "terminated"}
OPEN, REOPENED = "open", "reopened"
MAX_STEPS = 60
MAX_TASKS = 10_000
"""Tasks that are read. Of runs with more, only the tasks outside of loops are read."""
SEVERITY = ("FAILED", "TIMED_OUT", "CANCELED", "COMPLETED_WITH_ERRORS", "ACTIVE", "BLOCKED", "COMPLETED", "SKIPPED")
"""A cell shows the first of these states that a task of the step has."""


def runs_by_result(
    runs: QuerySet[Run], time_range: TimeRange, column: str = "created_at"
) -> tuple[dict[str, list[int]], bool]:
    """Return the runs whose time in `column` is in each bar of a range, by result; True if only the newest are counted.

    A run that failed and was opened again counts as reopened: by its end, once more at the time of the failure; by its
    start, instead of its present result unless that is a failure too. Runs two queries, each covered by an index.
    """
    newest = runs.filter(**{f"{column}__gte": time_range.since, f"{column}__lt": time_range.until})
    rows = newest.order_by(f"-{column}").values(column, "status")[:MAX_COUNTED]
    counts = {result: [0] * time_range.count for result in (*dict.fromkeys(RESULTS.values()), OPEN, REOPENED)}
    counted = 0
    for place, status, count in count_by_bar(rows, time_range, ["status"]):
        counts[RESULTS.get(status, OPEN)][place] += count
        counted += count
    is_by_start = column == "created_at"
    # A failure comes after the start, so that the index on failures serves both.
    failed = (newest if is_by_start else runs).filter(failed_before_at__gte=time_range.since).order_by()
    if not is_by_start:
        failed = failed.filter(failed_before_at__lt=time_range.until)
    rows = failed.values(column if is_by_start else "failed_before_at", "status")[:MAX_COUNTED]
    for place, status, count in count_by_bar(rows, time_range, ["status"]):
        result = RESULTS.get(status, OPEN)
        if not is_by_start:
            counts[REOPENED][place] += count
        elif result != "failed":
            counts[REOPENED][place] += count
            counts[result][place] -= count
    return counts, counted >= MAX_COUNTED


SAMPLED_RUNS = 100
"""The number of runs of each bar whose durations are read."""


def durations_by_bar(
    runs: QuerySet[Run], time_range: TimeRange, column: str = "created_at"
) -> tuple[list[int], list[int], bool]:
    """Return the median and the 95th percentile (nearest rank) of the durations of completed runs in each bar.

    A bar without any has 0. Runs one query, which reads the newest SAMPLED_RUNS of a bar; the third value is True if
    one has more.
    """
    since, step = time_range.since, time_range.step
    # The query does not filter by status: SQLite would read every completed run and sort all of them.
    of_first = runs.filter(**{f"{column}__gte": since, f"{column}__lt": since + step}).order_by(f"-{column}")
    columns = ("status", "created_at", "ended_at", "idle_ms")
    sql, values = of_first.values_list(*columns)[:SAMPLED_RUNS].query.sql_with_params()
    parts: list[str] = []
    params: list[Any] = []
    for place, start in enumerate(time_range.starts()):
        moved = {since: start, since + step: start + step}
        parts.append(f"SELECT {place}, newest.* FROM ({sql}) AS newest")
        params += [moved.get(value, value) for value in values]
    found: list[list[int]] = [[] for _ in range(time_range.count)]
    read = [0] * time_range.count
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), params)
        for place, status, created_at, ended_at, idle_ms in cursor.fetchall():
            read[place] += 1
            if status == COMPLETED:
                found[place].append(run_duration_ms(created_at, ended_at, idle_ms, ended_at))
    ordered = [sorted(durations) for durations in found]
    percentiles = [[_percentile(each, percent) for each in ordered] for percent in (50, 95)]
    return percentiles[0], percentiles[1], max(read) == SAMPLED_RUNS


def _percentile(ordered: Sequence[int], percent: int) -> int:
    return ordered[(len(ordered) * percent + 99) // 100 - 1] if ordered else 0


def times_of_runs(runs: QuerySet[Run], column: str) -> tuple[int, int] | None:
    """Return the first and the last time in a column, or None if no run has one. Runs two queries."""
    times = runs.filter(**{f"{column}__isnull": False}).values_list(column, flat=True)
    first = times.order_by(column).first()
    return None if first is None else (first, times.order_by(f"-{column}")[0])


@dataclass(frozen=True, slots=True)
class StepCell:
    """The state of one step in one run. `task`: the name of a task with the state; `count`: number of iterations.

    `is_repaired`: True if the step has completed after an attempt that failed.
    """

    run: RecentRun
    status: str = ""
    task: str = ""
    count: int = 0
    is_repaired: bool = False


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
    """Return the states of the steps in these runs. Runs two queries."""
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
    small = [run.id for run in runs if run.next_seq <= MAX_TASKS // len(runs)]
    failed = Attempt.objects.filter(run__in=small, status__in=("FAILED", "TIMED_OUT"), task__ref__in=refs).order_by()
    repaired = set(failed.values_list("run_id", "task__ref").distinct())
    return {
        place: StepCell(cell.run, cell.status, cell.task, totals[place], cell.status == COMPLETED and place in repaired)
        for place, cell in cells.items()
    }


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
