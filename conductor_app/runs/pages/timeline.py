"""The timeline of a run: its tree of tasks with a bar for each."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.paginator import Page, Paginator
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.step_types.waiting import Human
from ...definitions.policies import type_label
from ...tasks.queries.tasks import attempts_of_tasks
from ...tasks.queries.waiting import brief_delays
from ...utils.formatting import format_duration
from ...utils.time_scale import Stretch, TimeScale, collapse_idle, merge_stretches, overlap, zoom_scale
from ...web import badges
from ...web.badges import format_count, format_status, render_state, status_tone
from ...web.charts import zoom_links
from ...web.links import run_address
from ..timeline.queries import (
    DELAY,
    GAP,
    HOLD,
    IDLE,
    USUAL,
    WAIT,
    WORK,
    RunLife,
    TaskRow,
    TimelineSegment,
    task_rows,
)
from ..timeline.tree import (
    ACTIVE,
    CANCELED,
    CHILD_SEPARATOR,
    COMPLETED,
    FAILED,
    MAX_SPANS,
    WAITING_STEP_TYPES,
    Folding,
    LoadedTree,
    NodeKind,
    TaskSpan,
    TreeNode,
    TreeRow,
    has_child_run,
    is_busy,
    is_held_type,
    load_tree,
    shown_status,
    state_of,
)
from .view_model import NO_TASK, RunViewModel, status_chips, window_context

MAX_DEPTH = 9
"""Deeper rows are indented like this depth."""
LEAST_QUEUED_MS = 1000
"""A row says how long its task was queued from this time on, if the work was not longer."""
SMALL_PERCENT = 4
"""Percent of the width below which the failed part of a run is enlarged by the link to the failure."""
STRIP_TOLERANCE = 0.006
"""Bars of a summary become one if less than this share of the scale is between them."""


WORK_LEGEND = {
    badges.SUCCEEDED: ("completed", gettext_lazy("Work, completed")),
    badges.ACTIVE: ("leased", gettext_lazy("Work in progress")),
    badges.FAILED: ("failed", gettext_lazy("Work, failed")),
    badges.STOPPED: ("canceled", gettext_lazy("Work, canceled")),
}
"""Status and label of the work of workers in the legend, by display group."""
LEGEND = {
    HOLD: ("", gettext_lazy("Waiting for tasks, people, times or events")),
    WAIT: ("", gettext_lazy("In the queue")),
    GAP: ("", gettext_lazy("Delay before an attempt")),
    USUAL: ("", gettext_lazy("Typical end")),
    IDLE: ("", gettext_lazy("Time without work, not to scale")),
}


@dataclass(frozen=True, slots=True)
class TimelineLine:
    """One row: a task, an iteration, branch or phase, or a summary of alike siblings.

    `address`: selects its task; empty if it has none. `fold_address`: opens or closes it. `time`: how long it took, or
    why it is delayed. `notes`: attempts and time in the queue. `counts`: the siblings of a summary by state.
    """

    id: str
    name: str
    title: str
    kind: str
    type: str
    depth: int
    address: str
    fold_address: str
    is_open: bool
    state: SafeString
    segments: tuple[TimelineSegment, ...]
    time: str
    description: str
    notes: Sequence[str] = ()
    counts: Sequence[tuple[SafeString, str]] = ()
    usual: TimelineSegment | None = None
    is_chosen: bool = False
    is_group: bool = False
    is_slow: bool = False
    is_child: bool = False

    @property
    def kind_title(self) -> str:
        """Return the kind with the type of its step."""
        return f"{self.kind} ({self.type})" if self.type else self.kind

    @property
    def css(self) -> str:
        flags = {"chosen": self.is_chosen, "group": self.is_group, "child": self.is_child}
        return " ".join(name for name, flag in flags.items() if flag)


@dataclass(frozen=True, slots=True)
class LineBuilder:
    view_model: RunViewModel
    scale: TimeScale
    page: int
    delays: dict[str, str] = field(default_factory=dict)
    """Why attempts are not due, by attempt id."""

    def lines_of(self, rows: Sequence[TreeRow]) -> list[TimelineLine]:
        """Return the lines of rows. Reads their tasks and attempts in one query."""
        drawn = self._draw_tasks(rows)
        last = [each for task in drawn.values() if (each := task.last) and each.run_id == self.view_model.run.pk]
        for attempt in last:
            attempt.run = self.view_model.run
        self.delays.update(brief_delays(last, self.view_model.now))
        return [self._line(row, drawn) for row in rows]

    def _draw_tasks(self, rows: Sequence[TreeRow]) -> dict[str, TaskRow]:
        ids = [row.node.span.task_id for row in rows if row.node.span and not row.is_summary]
        attempts = attempts_of_tasks(ids)
        tasks = {each.task_id: each.task for each in attempts}
        rows_of_tasks = task_rows(tasks.values(), attempts, self.scale, self.view_model.now, self.view_model.usual)
        return {row.task.pk: row for row in rows_of_tasks}

    def _line(self, row: TreeRow, drawn: dict[str, TaskRow]) -> TimelineLine:
        span = None if row.is_summary else row.node.span
        if span is None or span.task_id not in drawn or (row.node.children and not row.is_open):
            nodes = row.siblings or (row.node,)
            begin, end = min(node.begin for node in nodes), max(node.end for node in nodes)
            state = next((each for each in (FAILED, ACTIVE, CANCELED) if any(node.state == each for node in nodes)), "")
            counts = row.counts
            text = format_duration(
                sum(part[1] - part[0] for life in self._lives() if (part := overlap(life, (begin, end))))
            )
            strip = self._strip(nodes) if not row.is_open or row.is_summary else ()
            segments = strip or self._bracket(begin, end, state or nodes[0].state)
            title = format_counts(counts) if counts else ""
            return self._build_line(
                row,
                kind="" if counts else type_label(row.node.span.type) if row.node.span else "",
                # Completed siblings come last: there is the least room.
                counts=[
                    (render_state(each), format_count(counts[each]))
                    for each in sorted(counts, key=lambda each: each == COMPLETED)
                ],
                type=row.node.span.type if row.node.span else "",
                state=render_state(state or nodes[0].state),
                segments=segments,
                time=text,
                description=", ".join(filter(None, (self._name(row), title, text))),
            )
        return self._task_line(row, span, drawn[span.task_id])

    def _task_line(self, row: TreeRow, span: TaskSpan, task: TaskRow) -> TimelineLine:
        last = task.last
        status = last.status if last and last.status == "PENDING" and span.is_open else span.status
        worked, waited = task.times(self.scale, self.view_model.now)
        # A wait for people, times or other tasks is not slow work.
        is_compared = row.node.run_id == self.view_model.run.pk and not is_held_type(span.type)
        usual = self.view_model.usual.get(span.ref) if is_compared else None
        text = format_duration(worked) if worked or not is_held_type(span.type) else ""
        queued = _("queued %(span)s") % {"span": format_duration(waited)}
        if status == "PENDING":
            text = (self.delays.get(last.pk, "") if last else "") or queued
        is_long = LEAST_QUEUED_MS <= waited >= worked and status != "PENDING" and not is_held_type(span.type)
        description = (
            _("%(task)s: waiting %(ran)s")
            if is_held_type(span.type)
            else _("%(task)s: queued %(waited)s, working %(ran)s")
        )
        facts = {"task": row.node.id, "waited": format_duration(waited), "ran": format_duration(worked)}
        return self._build_line(
            row,
            kind=type_label(span.type),
            type=span.type,
            state=render_state(shown_status(span.type, status)),
            segments=task.segments,
            usual=task.usual if usual else None,
            time=text,
            notes=[*filter(None, (_count_attempts(len(task.attempts)), queued if is_long else ""))],
            description=description % facts,
            is_slow=usual is not None and usual.is_slow(worked),
        )

    def _build_line(self, row: TreeRow, **facts: object) -> TimelineLine:
        node = row.node
        is_chosen = not row.is_summary and bool(node.span) and node.id == self.view_model.chosen
        return TimelineLine(
            id=row.id,
            name=self._name(row),
            title=node.span.key if node.span and not row.is_summary else "",
            depth=min(row.depth, MAX_DEPTH),
            address=self._address(row, is_chosen),
            fold_address=self._fold_address(row) if row.is_foldable else "",
            is_open=row.is_open,
            is_chosen=is_chosen,
            is_group=row.is_summary or node.span is None,
            is_child=CHILD_SEPARATOR in node.id,
            **facts,  # type: ignore[arg-type]
        )

    def _name(self, row: TreeRow) -> str:
        if row.is_summary:
            count = {"count": format_count(len(row.siblings))}
            kinds = {node.kind for node in row.siblings}
            if kinds == {NodeKind.ITERATION}:
                return _("%(count)s iterations") % count
            if row.id.endswith("/*"):
                return _("%(count)s branches") % count
            return _("%(name)s: %(count)s tasks") % {**count, "name": row.siblings[0].label}
        if row.node.kind is NodeKind.ITERATION:
            return _("Iteration %(number)s") % {"number": row.node.label}
        if row.node.kind is NodeKind.BRANCH and row.node.label.isdecimal():
            return _("Branch %(number)s") % {"number": row.node.label}
        return row.node.label

    def _address(self, row: TreeRow, is_chosen: bool) -> str:
        span = row.node.span
        if row.is_summary or span is None:
            return ""
        if row.node.run_id != self.view_model.run.pk:
            return run_address(row.node.run_id) + f"?task={span.key}"
        return self.view_model.query.address(task=NO_TASK if is_chosen else span.key, attempt=None)

    def _fold_address(self, row: TreeRow) -> str:
        query = self.view_model.query
        fold = query.fold_summary_address if row.is_summary else query.fold_address
        return fold(row.id, row.is_open, page=self.page if self.page > 1 else None)

    def _strip(self, nodes: Iterable[TreeNode]) -> tuple[TimelineSegment, ...]:
        """Return the work of all tasks of some nodes as one row of bars."""
        spans = [span for node in nodes for span in node.spans() if not is_held_type(span.type)]
        tolerance = round((self.scale.end - self.scale.begin) * STRIP_TOLERANCE)
        bars = []
        for state in (CANCELED, COMPLETED, ACTIVE, FAILED):
            visible = (_visible_part(span) for span in spans if state_of(span.status) == state)
            own = [part for span in visible for life in self._lives() if (part := overlap(life, span))]
            for begin, end in merge_stretches(own, tolerance):
                if self.scale.overlaps(begin, end):
                    extent = self.scale.extent(begin, end)
                    bars.append(TimelineSegment("work many", state, *extent, format_status(state)))
        return tuple(bars)

    def _bracket(self, begin: int, end: int, state: str) -> tuple[TimelineSegment, ...]:
        """Return the span of an open node without a task, or of nodes without work."""
        parts = [part for life in self._lives() if (part := overlap(life, (begin, end)))]
        title = format_duration(end - begin)
        return tuple(
            TimelineSegment(HOLD, state, *self.scale.extent(*part), title)
            for part in parts
            if self.scale.overlaps(*part)
        )

    def _lives(self) -> Sequence[tuple[int, int]]:
        return self.scale.lives or ((self.scale.begin, max(self.scale.end, self.view_model.now)),)


def _visible_part(span: TaskSpan) -> tuple[int, int]:
    """Return the part of a task that a summary shows: a failure is a mark at its end, so that it covers no other."""
    return (span.end if state_of(span.status) == FAILED else span.begin), span.end


def format_counts(counts: dict[str, int]) -> str:
    """Return the number of siblings by state: `38 completed, 1 failed, 1 active`."""
    return ", ".join(f"{format_count(count)} {format_status(state).lower()}" for state, count in counts.items())


def legend_of(lines: Sequence[TimelineLine], has_gaps: bool) -> list[tuple[TimelineSegment, str]]:
    """Return a segment and its label for each kind of bar that is in the lines."""
    segments = [segment for line in lines for segment in line.segments]
    kinds = {GAP if segment.kind == DELAY else segment.kind for segment in segments}
    kinds |= {USUAL} if any(line.usual for line in lines) else set()
    kinds |= {IDLE} if has_gaps else set()
    groups = {status_tone(segment.status) for segment in segments if segment.kind.startswith(WORK)}
    shown = [(WORK, *row) for group, row in WORK_LEGEND.items() if group in groups]
    shown += [(kind, *row) for kind, row in LEGEND.items() if kind in kinds]
    return [
        (TimelineSegment(kind, status, *(("10", "2") if kind == USUAL else ("1", "20")), ""), str(label))
        for kind, status, label in shown
    ]


def _count_attempts(count: int) -> str:
    return ngettext("%(count)s attempt", "%(count)s attempts", count) % {"count": count} if count > 1 else ""


ROWS_ON_PAGE = 300


def timeline_tab(view_model: RunViewModel) -> dict[str, Any]:
    query = view_model.query
    tree = load_tree(view_model.run, requested_folding(view_model), view_model.now)
    whole = run_scale(view_model.lives)
    scale = collapse_idle(
        zoom_scale(whole, query.number("from"), query.number("to")), busy_stretches(tree, whole.lives)
    )
    window = row_window(tree.rows, query.number("page"), view_model.chosen)
    builder = LineBuilder(view_model, scale, window.number)
    lines = builder.lines_of(list(window.object_list))
    return {
        "lines": lines,
        "legend": legend_of(lines, bool(scale.gaps)),
        "ticks": scale.ticks(whole.begin),
        "gaps": [(gap, _gap_label(tree, scale, scale.gaps[place])) for place, gap in enumerate(scale.axis_gaps())],
        "is_zoomed": (scale.begin, scale.end) != (whole.begin, whole.end),
        "zoom": zoom_links(scale, whole, query.address),
        "has_children": any(has_child_run(row.node) for row in tree.rows),
        "children_address": query.address(children="" if query["children"] else "1"),
        "shows_children": bool(query["children"]),
        "first_failed": _first_failed_address(view_model, tree, scale),
        "missing_tasks": MAX_SPANS if tree.is_cut else 0,
        "tasks_address": query.address(tab="tasks", page=None),
        **window_context(window, query),
        "chips": status_chips(Counter(span.status for span in tree.spans), query),
        "status": query["status"],
    }


def requested_folding(view_model: RunViewModel) -> Folding:
    """Return what the address opens and closes."""
    query = view_model.query
    return Folding(
        frozenset(query.node_ids("open")),
        frozenset(query.node_ids("shut")),
        view_model.chosen,
        query["status"],
        bool(query["children"]),
    )


def run_scale(lives: Sequence[RunLife]) -> TimeScale:
    end = lives[-1].end
    begin = min(lives[0].begin, end - 1)
    times = tuple((life.begin, life.end) for life in lives)
    return TimeScale(begin, max(end, begin + 1), (), times if len(lives) > 1 else ())


def busy_stretches(tree: LoadedTree, lives: Sequence[Stretch]) -> list[Stretch]:
    """Return the times in which a worker or a queue had a task, or a sub-workflow was open."""
    spans = [(span.begin, span.end) for span in tree.spans if is_busy(span)]
    if not lives:
        return spans
    return [part for span in spans for life in lives if (part := overlap(span, life))]


def row_window(rows: Sequence[TreeRow], page: int | None, chosen: str) -> Page[TreeRow]:
    """Return the page of the rows, by default the one with the selected task."""
    if page is None:
        index = next((number for number, row in enumerate(rows) if chosen and row.id == chosen), 0)
        page = index // ROWS_ON_PAGE + 1
    return Paginator(rows, ROWS_ON_PAGE).get_page(page)


def _gap_label(tree: LoadedTree, scale: TimeScale, gap: Stretch) -> str:
    """Return what a collapsed time was: the run had ended, waited for a person, a time or an event, or was idle."""
    middle, facts = sum(gap) // 2, {"span": format_duration(gap[1] - gap[0])}
    if scale.lives and not any(begin <= middle <= end for begin, end in scale.lives):
        return _("%(span)s idle between executions") % facts
    types = {span.type for span in tree.spans if span.begin <= middle <= span.end} & WAITING_STEP_TYPES
    if types == {Human.type}:
        return _("%(span)s waiting for a person") % facts
    return (_("%(span)s waiting") if types else _("%(span)s idle")) % facts


def _first_failed_address(view_model: RunViewModel, tree: LoadedTree, scale: TimeScale) -> str:
    """Return the address that selects the failed task, and enlarges its part of the scale if it is small.

    Empty if the page already shows it.
    """
    failed: str = view_model.cause.task if view_model.run.failed_attempt_id else ""
    node = next((each for each in tree.root.walk() if each.id == failed), None) if failed else None
    around = next((each for each in tree.root.walk() if node in each.children and each is not tree.root), node)
    if around is None or scale.percent_of(around.end) - scale.percent_of(around.begin) >= SMALL_PERCENT:
        is_shown = not failed or failed == view_model.chosen
        return "" if is_shown else view_model.query.address(task=failed, attempt=None, **{"from": None, "to": None})
    begin, margin = run_scale(view_model.lives).begin, max((around.end - around.begin) // 4, 1)
    part = {"from": around.begin - margin - begin, "to": around.end + margin - begin}
    return view_model.query.address(task=failed, attempt=None, **part)
