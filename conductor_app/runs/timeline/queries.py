"""What the page of a run shows of its tasks: rows of the timeline, and the marks of its diagram.

The attempts of a row are segments in percent of the whole span. A diagram has the state of each step, and the tasks of
the iterations that are chosen.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from django.db.models import Case, Count, F, Q, QuerySet, When, Window
from django.db.models.functions import RowNumber
from django.utils.translation import gettext as _

from ...core.definition import MAX_DEPTH, Document, Flow, bodies_of, references_inside, structure_of, structure_of_step
from ...core.primitives import JsonValue
from ...core.states import RUN
from ...core.step_types.waiting import Human
from ...db.fields import DocumentField
from ...definitions.diagram.marks import StepMark, StepMarks
from ...definitions.durations import TypicalDuration
from ...utils import clock
from ...utils.formatting import format_duration
from ...utils.time_scale import Stretch, TimeScale, merge_stretches, overlap
from ..models import Attempt, HistoryEntry, Run, Task
from ..queries.retention import time_of_id
from .tree import LONG_STEP_TYPES, WAITING_STEP_TYPES, shown_status

WAIT, DELAY, GAP, WORK, HOLD = "wait", "delay", "gap", "work", "hold"
LEAST_USUAL_PERCENT = 1
"""Percent of the width between the start and the typical end of a task, below which it is not marked."""
USUAL, IDLE = "typical", "idle"
"""Kinds of bars beside those of attempts: the typical end of a task, and idle time of the run."""


@dataclass(frozen=True, slots=True)
class TimelineSegment:
    """A segment of a task: delay before it is due, gap before a retry, wait in the queue, work of a worker, or hold.

    A hold is the time of a task without a worker: the task waits for a person, a time, an event or other tasks.
    """

    kind: str
    status: str
    left: str
    width: str
    title: str


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task with its attempts, oldest first."""

    task: Task
    attempts: tuple[Attempt, ...]
    segments: tuple[TimelineSegment, ...]
    usual: TimelineSegment | None = None
    """Typical end of the task: a tick at the median."""

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    def times(self, scale: TimeScale, now: int) -> tuple[int, int]:
        """Return how long workers had the task and how long it was queued, in milliseconds, in all attempts.

        Of a task without a worker, the first number is the time that it was held.
        """
        worked = queued = 0
        for attempt in self.attempts:
            if is_held(attempt):
                worked += sum(end - begin for begin, end in hold_stretches(attempt, scale, now))
                continue
            due, begin, end = phases_of(attempt, now)
            worked, queued = worked + end - begin, queued + begin - due
        return worked, queued


def task_rows(
    tasks: Iterable[Task],
    attempts: Iterable[Attempt],
    scale: TimeScale,
    now: int,
    usual: Mapping[str, TypicalDuration] | None = None,
) -> list[TaskRow]:
    """Return a row for each task, in the given order. Nothing is held between the lives of `scale`."""
    tries: dict[str, list[Attempt]] = {}
    for attempt in sorted(attempts, key=lambda attempt: attempt.number):
        tries.setdefault(attempt.task_id, []).append(attempt)
    return [task_row(task, tries.get(task.pk, []), scale, now, (usual or {}).get(task.ref)) for task in tasks]


def task_row(
    task: Task, attempts: list[Attempt], scale: TimeScale, now: int, usual: TypicalDuration | None = None
) -> TaskRow:
    for attempt in attempts:
        attempt.task = task
    segments = [segment for attempt in attempts for segment in segments_of(attempt, scale, now)]
    gaps = [_retry_gap(one, other, scale) for one, other in pairwise(attempts) if one.ended_at is not None]
    return TaskRow(task, tuple(attempts), (*filter(None, gaps), *segments), _expected_end(attempts, scale, usual))


def _retry_gap(attempt: Attempt, following: Attempt, scale: TimeScale) -> TimelineSegment | None:
    """Return the segment between the end of an attempt and the next one."""
    begin, end = attempt.ended_at or 0, following.scheduled_at
    if end <= begin or not scale.overlaps(begin, end):
        return None
    numbers = {"one": attempt.number + 1, "other": following.number + 1}
    return _build_segment(GAP, following, scale, begin, end, _("between attempts %(one)s and %(other)s") % numbers)


def _expected_end(attempts: list[Attempt], scale: TimeScale, usual: TypicalDuration | None) -> TimelineSegment | None:
    begin = attempts[-1].started_at if attempts else None
    if usual is None or begin is None or not scale.overlaps(end := begin + usual.p50, end):
        return None
    if scale.percent_of(end) - scale.percent_of(begin) < LEAST_USUAL_PERCENT:
        return None  # too small to distinguish from the bar
    return TimelineSegment(USUAL, "", *scale.extent(end, end), usual.sentence)


def segments_of(attempt: Attempt, scale: TimeScale, now: int) -> Iterator[TimelineSegment]:
    if is_held(attempt):
        yield from _hold_segments(attempt, scale, now)
        return
    due, begin, end = phases_of(attempt, now)
    facts = {"number": attempt.number + 1, "status": attempt.status.lower()}
    if due > attempt.scheduled_at and scale.overlaps(attempt.scheduled_at, due):
        kind = GAP if attempt.number else DELAY
        yield _build_segment(kind, attempt, scale, attempt.scheduled_at, due, _("attempt %(number)s delayed") % facts)
    if begin > due and scale.overlaps(due, begin):
        yield _build_segment(WAIT, attempt, scale, due, begin, _("attempt %(number)s queued") % facts)
    if attempt.started_at is not None and scale.overlaps(begin, end):
        yield _build_segment(WORK, attempt, scale, begin, end, _("attempt %(number)s %(status)s") % facts)


def phases_of(attempt: Attempt, now: int) -> tuple[int, int, int]:
    """Return when an attempt was due, when a worker began it, and its end, each until now if it has not happened."""
    end = now if attempt.ended_at is None else attempt.ended_at
    begin = end if attempt.started_at is None else attempt.started_at
    # Each poll moves `visible_at`. Before the first poll, it is the time at which the attempt was due.
    due = attempt.scheduled_at + attempt.delay_ms if attempt.poll_count else attempt.visible_at
    return min(max(due, attempt.scheduled_at), begin), begin, end


def is_held(attempt: Attempt) -> bool:
    """Return True if the attempt has no worker, because it never was in a queue."""
    return attempt.queue == ""


def hold_stretches(attempt: Attempt, scale: TimeScale, now: int) -> list[Stretch]:
    """Return when an attempt without a worker was open. One that was reopened was closed together with its run."""
    end = now if attempt.ended_at is None else attempt.ended_at
    whole = (attempt.scheduled_at, max(end, attempt.scheduled_at))
    return [part for life in scale.lives if (part := overlap(life, whole))] if scale.lives else [whole]


def _hold_segments(attempt: Attempt, scale: TimeScale, now: int) -> Iterator[TimelineSegment]:
    title = _("attempt %(number)s %(status)s") % {"number": attempt.number + 1, "status": attempt.status.lower()}
    kind = HOLD if attempt.task.type in LONG_STEP_TYPES else WORK
    for begin, end in hold_stretches(attempt, scale, now):
        if scale.overlaps(begin, end):
            yield _build_segment(kind, attempt, scale, begin, end, title)


def _build_segment(kind: str, attempt: Attempt, scale: TimeScale, begin: int, end: int, title: str) -> TimelineSegment:
    return TimelineSegment(kind, attempt.status, *scale.extent(begin, end), f"{title}, {format_duration(end - begin)}")


MAX_REVISIONS = 20_000
"""Revisions above which the history is not searched."""
MAX_TRANSITIONS = 200
REOPENING = frozenset(
    event for status, event in RUN.moves if status in RUN.final and RUN.after(status, event) in RUN.open
)


@dataclass(frozen=True, slots=True)
class RunLife:
    """One life of a run, from a start or a retry, rerun or restart to its end, or until now."""

    begin: int
    end: int

    @property
    def duration_ms(self) -> int:
        return self.end - self.begin


def run_lives(run: Run, now: int) -> list[RunLife]:
    """Return the lives of a run, oldest first. Runs a query if the run may have been reopened; two if it was restarted.

    A restart sets the time of the creation, which the id of the run has as well.
    """
    is_first = not run.last_retried_at and run.created_at == time_of_id(run.pk)
    if is_first or run.revision > MAX_REVISIONS:
        return lives_between((), run, run.created_at, now)
    changes = Q(effects__contains='"TransitionRun"') | Q(effects__contains='"MoveRun"')
    entries = HistoryEntry.objects.filter(changes, run_id=run.pk).order_by("revision", "id")
    rows = list(entries.values_list("at", "effects")[:MAX_TRANSITIONS])
    begin = run.created_at
    if rows and rows[0][0] < begin:
        begin = HistoryEntry.objects.filter(run_id=run.pk).order_by("revision").values_list("at", flat=True)[0]
    return lives_between(rows, run, begin, now)


def lives_between(rows: Iterable[tuple[int, Any]], run: Run, begin: int, now: int) -> list[RunLife]:
    """Return the lives from decisions that changed the status of a run: the time and the effects of each."""
    lives: list[RunLife] = []
    ended_at: int | None = None
    status = "RUNNING"
    for at, effects in rows:
        for event in [str(line.get("event", "")) for line in effects or () if line.get("effect") == "TransitionRun"]:
            status = RUN.after(status, event) if RUN.allows(status, event) else status
            if event in REOPENING and ended_at is not None:
                lives.append(RunLife(begin, ended_at))
                begin, ended_at = at, None
            elif status in RUN.final and ended_at is None:
                ended_at = max(at, begin)
    return [*lives, RunLife(begin, max(now if run.ended_at is None else run.ended_at, begin))]


HOLDING_EFFECTS = ("StopTask", "ReleaseTask", "RemoveStops", "TransitionRun")
"""Effects that begin or end a stop at a breakpoint or a pause."""


def slow_runs(runs: Iterable[Run], usual: Mapping[tuple[str, int], TypicalDuration], now: int) -> dict[str, int]:
    """Return how long those runs worked that took longer than typical, in milliseconds by id, without waits for people.

    Runs two queries, or none if no run took longer.
    """
    typical = {run: each for run in runs if (each := usual.get((run.name, run.version)))}
    long = [run for run, each in typical.items() if each.is_slow(run.duration_ms(now))]
    worked = working_ms(long, now)
    return {run.pk: worked[run.pk] for run in long if typical[run].is_slow(worked[run.pk])}


def working_ms(runs: Collection[Run], now: int) -> dict[str, int]:
    """Return how long the runs worked, without waits for people, by id. Runs two queries, or none without runs."""
    waits = _waits_for_people(runs, now) if runs else {}
    return {
        run.pk: run.duration_ms(now) - sum(end - begin for begin, end in merge_stretches(waits[run.pk])) for run in runs
    }


def _waits_for_people(runs: Collection[Run], now: int) -> dict[str, list[Stretch]]:
    """Return when runs waited at human tasks and breakpoints, and when they were paused, by id."""
    ends = {run.pk: now if run.ended_at is None else run.ended_at for run in runs}
    waits: dict[str, list[Stretch]] = {id: [] for id in ends}
    human = Attempt.objects.filter(run_id__in=ends, task__type=Human.type)
    for id, begin, end in human.values_list("run_id", "scheduled_at", "ended_at"):
        waits[id].append((begin, ends[id] if end is None else end))
    begun: dict[str, dict[str, int]] = {id: {} for id in ends}
    holding = Q(*(("effects__contains", f'"{effect}"') for effect in HOLDING_EFFECTS), _connector=Q.OR)
    known = [run.pk for run in runs if run.revision <= MAX_REVISIONS]
    entries = HistoryEntry.objects.filter(holding, run_id__in=known).order_by("run_id", "revision")
    for id, at, effects in entries.values_list("run_id", "at", "effects"):
        for line in [line for line in effects if line["effect"] in HOLDING_EFFECTS]:
            task, event = str(line.get("task", "")), line.get("event")
            if line["effect"] == "StopTask" or event == "pause":
                begun[id][task] = at
                continue
            ended = [task] if line["effect"] == "ReleaseTask" or event == "resume" else list(begun[id])
            waits[id] += [(begun[id].pop(each), at) for each in ended if each in begun[id]]
    return {id: [*found, *((begin, ends[id]) for begin in begun[id].values())] for id, found in waits.items()}


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
