"""The timeline of a run: one row per task, similar tasks in one row, optionally with the tasks of sub-workflows."""

from dataclasses import dataclass, replace
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...insight.durations import format_duration
from ...insight.runs.critical_path import TaskSpan, critical_path_of
from ...insight.runs.timeline import TaskRow, TimelineSegment, TimeScale, run_span, task_rows, zoom_scale
from ...insight.tasks.task_list import StepTasks, TaskRequest, TaskWindow, attempts_of, page_of, task_window
from ...models import Task
from ..badges import format_count, render_badge, status_tone
from ..zoom import zoom_links
from .critical_path import critical_below as paths_below
from .critical_path import critical_path_context as path_in_words
from .run_view_model import NO_TASK, RunViewModel, run_address

MAX_CHILDREN, MAX_CHILD_TASKS = 20, 60


@dataclass(frozen=True, slots=True)
class TimelineLine:
    """One row: a task, a task of a sub-workflow (`depth` 1), or a group of similar tasks."""

    seq: int
    name: str
    kind: str
    address: str
    badges: tuple[SafeString, ...]
    waited: str
    duration: str
    segments: tuple[TimelineSegment, ...]
    usual: TimelineSegment | None = None
    depth: int = 0
    is_chosen: bool = False
    is_group: bool = False
    is_slow: bool = False
    is_critical: bool = False

    @property
    def description(self) -> str:
        """Return the bars as text for screen readers."""
        facts = {"task": self.name, "waited": self.waited or "–", "ran": self.duration or "–"}
        return _("%(task)s: queued %(waited)s, running %(ran)s") % facts


def requested_tasks(view_model: RunViewModel) -> TaskRequest:
    """Return which tasks the address requests. The window contains the selected task."""
    query = view_model.query
    page = query.number("page")
    if page is None:
        page = page_of(view_model.run, view_model.chosen) if query["only"] and view_model.chosen else 1
    return TaskRequest(query["status"], query["only"], max(page, 1))


def timeline_tab(view_model: RunViewModel) -> dict[str, Any]:
    """Return the context of the tab."""
    full_scale = run_span(view_model.run, view_model.now)
    scale = zoom_scale(full_scale, view_model.query.number("from"), view_model.query.number("to"))
    window = task_window(view_model.run, requested_tasks(view_model))
    rows = task_rows(window.tasks, window.attempts, scale, view_model.now, view_model.usual)
    lines = [
        *(_task_line(row, view_model) for row in rows),
        *(_group_line(group, scale, view_model) for group in window.groups),
    ]
    lines.sort(key=lambda line: line.seq)
    has_children = any(row.last and row.last.child_id for row in rows)
    path = critical_path_of(view_model.run, view_model.now) if view_model.query["critical"] else None
    if path:
        lines = _mark_critical(lines, path)
    if view_model.query["children"] and has_children:
        lines = _insert_children(lines, rows, scale, view_model)
    return {
        "window": window,
        "lines": lines,
        "ticks": scale.ticks(full_scale.begin),
        "is_zoomed": scale != full_scale,
        "zoom": zoom_links(scale, full_scale, view_model.query.address),
        "has_children": has_children,
        "children_address": view_model.query.address(children="" if view_model.query["children"] else "1"),
        "shows_children": bool(view_model.query["children"]),
        "first_failed": _first_failed_address(view_model),
        **path_in_words(path, view_model),
        **timeline_filters(window, view_model),
    }


def timeline_filters(window: TaskWindow, view_model: RunViewModel) -> dict[str, Any]:
    """Return the status filters, and links to other windows."""
    query, counts = view_model.query, window.counts
    every = [("", sum(counts.values())), *sorted(counts.items())]
    return {
        "chips": [
            {
                "label": _("All"),
                "badge": render_badge(status) if status else None,
                "count": count,
                "address": query.address(status=status, page=None, task=NO_TASK),
                "is_chosen": status == window.criteria.status,
            }
            for status, count in every
        ],
        "only": window.criteria.only,
        "only_address": query.address(only=None, page=None),
        "earlier": query.address(page=window.previous) if window.previous else "",
        "later": query.address(page=window.next) if window.next else "",
        "unfiltered_address": query.address(status=None, only=None, page=None),
    }


def _task_line(row: TaskRow, view_model: RunViewModel) -> TimelineLine:
    task, last = row.task, row.last
    waiting = task.status == "ACTIVE" and last is not None and last.status == "PENDING"
    worked, waited = _measure_times(row, view_model.now)
    is_chosen = view_model.task is not None and task.pk == view_model.task.pk
    count = len(row.attempts)
    tries = ngettext("%(count)s attempt", "%(count)s attempts", count) % {"count": count} if count > 1 else ""
    usual = view_model.usual.get(task.ref)
    return TimelineLine(
        seq=task.seq,
        name=str(task),
        kind=" · ".join(filter(None, (task.type, tries))),
        address=view_model.query.address(task=NO_TASK if is_chosen else str(task), attempt=None),
        badges=(render_badge(last.status if waiting and last else task.status),),
        waited=format_duration(waited),
        duration=format_duration(worked) if worked or not waiting else "",
        segments=row.segments,
        usual=row.usual,
        is_chosen=is_chosen,
        is_slow=usual is not None and usual.is_slow(worked),
    )


def _measure_times(row: TaskRow, now: int) -> tuple[int, int]:
    """Return how long the attempts were leased and how long they were queued, in milliseconds."""
    ends = [now if attempt.ended_at is None else attempt.ended_at for attempt in row.attempts]
    pairs = list(zip(row.attempts, ends, strict=True))
    worked = sum(end - attempt.started_at for attempt, end in pairs if attempt.started_at is not None)
    starts = [end if attempt.started_at is None else attempt.started_at for attempt, end in pairs]
    return worked, sum(at - attempt.scheduled_at for at, attempt in zip(starts, row.attempts, strict=True))


def _group_line(group: StepTasks, scale: TimeScale, view_model: RunViewModel) -> TimelineLine:
    end = view_model.now if group.is_open else group.end
    tone = "failed" if any(status_tone(status) == "failed" for status in group.counts) else "completed"
    bar = TimelineSegment(
        "work many", "leased" if group.is_open else tone, *scale.extent(group.begin, end), _alike_text(group.total)
    )
    return TimelineLine(
        seq=group.first_seq,
        name=group.name,
        kind=f"{group.type} · {_alike_text(group.total)}",
        address=view_model.query.address(only=group.name, page=None, task=NO_TASK),
        badges=tuple(render_badge(status) for status in sorted(group.counts)),
        waited="",
        duration=format_duration(end - group.begin),
        segments=(bar,) if scale.overlaps(group.begin, end) else (),
        is_group=True,
    )


def _alike_text(count: int) -> str:
    return ngettext("%(count)s similar task", "%(count)s similar tasks", count) % {"count": format_count(count)}


def _insert_children(
    lines: list[TimelineLine], rows: list[TaskRow], scale: TimeScale, view_model: RunViewModel
) -> list[TimelineLine]:
    """Return the lines with the tasks of sub-workflows after the tasks that started them."""
    children = {row.last.child_id: row.task.seq for row in rows if row.last and row.last.child_id}
    some = dict(list(children.items())[:MAX_CHILDREN])
    tasks = list(
        Task.objects.filter(run_id__in=some)
        .defer("step_state")
        .order_by("run_id", "seq")[: MAX_CHILDREN * MAX_CHILD_TASKS]
    )
    below: dict[int, list[TimelineLine]] = {}
    rows = task_rows(tasks, attempts_of(tasks), scale, view_model.now)
    on_path = paths_below(rows, {line.seq for line in lines if line.is_critical}, some, view_model.now)
    for row in rows:
        child_lines = below.setdefault(some[row.task.run_id], [])
        if len(child_lines) < MAX_CHILD_TASKS:
            child_lines.append(replace(_child_line(row, view_model), is_critical=row.task.pk in on_path))
    return [each for line in lines for each in (line, *below.get(line.seq, ()))]


def _mark_critical(lines: list[TimelineLine], path: list[TaskSpan]) -> list[TimelineLine]:
    """Return the lines, marked if they or a task of their group are on the critical path."""
    keys, names = {link.key for link in path}, {link.name for link in path}
    return [replace(line, is_critical=line.name in (names if line.is_group else keys)) for line in lines]


def _child_line(row: TaskRow, view_model: RunViewModel) -> TimelineLine:
    there = run_address(row.task.run_id) + f"?task={row.task}"
    return replace(_task_line(row, view_model), address=there, depth=1, is_chosen=False, is_slow=False)


def _first_failed_address(view_model: RunViewModel) -> str:
    """Return the address that selects the first failed task."""
    failed: str = view_model.cause.task if view_model.run.failed_attempt_id else ""
    return view_model.query.address(task=failed, attempt=None, **{"from": None, "to": None}) if failed else ""
