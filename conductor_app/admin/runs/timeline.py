"""The timeline of a run: a row a task, tasks alike as one row, sub-workflows among them where that is wanted."""

from dataclasses import dataclass, replace
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...insight.critical_path import TaskSpan, critical_path_of
from ...insight.durations import format_duration
from ...insight.tasks import StepTasks, TaskRequest, TaskWindow, attempts_of, page_of, task_window
from ...insight.timeline import TaskRow, TimelineSegment, TimeScale, run_span, task_rows, zoom_scale
from ...models import Task
from ..badges import badge, format_count, status_tone
from ..zoom import zoom_links
from .critical_path import critical_below as paths_below
from .critical_path import critical_path_context as path_in_words
from .run_view_model import NOTHING, RunViewModel, run_address

MOST_CHILDREN, MOST_OF_A_CHILD = 20, 60


@dataclass(frozen=True, slots=True)
class TimelineLine:
    """One row of the table: a task, a task of a sub-workflow (`depth` 1), or tasks alike."""

    seq: int
    name: str
    kind: str
    address: str
    badges: tuple[SafeString, ...]
    waited: str
    took: str
    segments: tuple[TimelineSegment, ...]
    usual: TimelineSegment | None = None
    depth: int = 0
    is_chosen: bool = False
    is_group: bool = False
    is_slow: bool = False
    is_critical: bool = False

    @property
    def in_words(self) -> str:
        """The bars, for who does not see them."""
        facts = {"task": self.name, "waited": self.waited or "–", "ran": self.took or "–"}
        return _("%(task)s: waited %(waited)s, ran %(ran)s") % facts


def requested_tasks(story: RunViewModel) -> TaskRequest:
    """Which tasks the address asks for; a chosen one brings its window with it."""
    asked = story.asked
    page = asked.number("page")
    if page is None:
        page = page_of(story.run, story.chosen) if asked["only"] and story.chosen else 1
    return TaskRequest(asked["status"], asked["only"], max(page, 1))


def timeline_tab(story: RunViewModel) -> dict[str, Any]:
    """What the tab shows."""
    whole = run_span(story.run, story.now)
    scale = zoom_scale(whole, story.asked.number("from"), story.asked.number("to"))
    window = task_window(story.run, requested_tasks(story))
    drawn = task_rows(window.tasks, window.attempts, scale, story.now, story.usual)
    lines = [*(_line(row, story) for row in drawn), *(_group(group, scale, story) for group in window.groups)]
    lines.sort(key=lambda line: line.seq)
    has_children = any(row.last and row.last.child_id for row in drawn)
    path = critical_path_of(story.run, story.now) if story.asked["critical"] else None
    if path:
        lines = _with_path(lines, path)
    if story.asked["children"] and has_children:
        lines = _with_children(lines, drawn, scale, story)
    return {
        "window": window,
        "lines": lines,
        "ticks": scale.ticks(whole.begin),
        "is_zoomed": scale != whole,
        "zoom": zoom_links(scale, whole, story.asked.address),
        "has_children": has_children,
        "children_address": story.asked.address(children="" if story.asked["children"] else "1"),
        "shows_children": bool(story.asked["children"]),
        "first_failed": _first_failed(story),
        **path_in_words(path, story),
        **timeline_filters(window, story),
    }


def timeline_filters(window: TaskWindow, story: RunViewModel) -> dict[str, Any]:
    """The chips by status, and the ways to other windows."""
    asked, counts = story.asked, window.counts
    every = [("", sum(counts.values())), *sorted(counts.items())]
    return {
        "chips": [
            {
                "label": _("All"),
                "badge": badge(status) if status else None,
                "count": count,
                "address": asked.address(status=status, page=None, task=NOTHING),
                "is_chosen": status == window.wanted.status,
            }
            for status, count in every
        ],
        "only": window.wanted.only,
        "only_address": asked.address(only=None, page=None),
        "earlier": asked.address(page=window.previous) if window.previous else "",
        "later": asked.address(page=window.next) if window.next else "",
        "unfiltered_address": asked.address(status=None, only=None, page=None),
    }


def _line(row: TaskRow, story: RunViewModel) -> TimelineLine:
    task, last = row.task, row.last
    waiting = task.status == "ACTIVE" and last is not None and last.status == "PENDING"
    worked, waited = _spent(row, story.now)
    is_chosen = story.task is not None and task.pk == story.task.pk
    count = len(row.attempts)
    tries = ngettext("%(count)s attempt", "%(count)s attempts", count) % {"count": count} if count > 1 else ""
    usual = story.usual.get(task.ref)
    return TimelineLine(
        seq=task.seq,
        name=str(task),
        kind=" · ".join(filter(None, (task.type, tries))),
        address=story.asked.address(task=NOTHING if is_chosen else str(task), attempt=None),
        badges=(badge(last.status if waiting and last else task.status),),
        waited=format_duration(waited),
        took=format_duration(worked) if worked or not waiting else "",
        segments=row.segments,
        usual=row.usual,
        is_chosen=is_chosen,
        is_slow=usual is not None and usual.is_slow(worked),
    )


def _spent(row: TaskRow, now: int) -> tuple[int, int]:
    """How long its attempts were worked on, and how long they waited."""
    ends = [now if attempt.ended_at is None else attempt.ended_at for attempt in row.attempts]
    pairs = list(zip(row.attempts, ends, strict=True))
    worked = sum(end - attempt.started_at for attempt, end in pairs if attempt.started_at is not None)
    begun = [end if attempt.started_at is None else attempt.started_at for attempt, end in pairs]
    return worked, sum(at - attempt.scheduled_at for at, attempt in zip(begun, row.attempts, strict=True))


def _group(group: StepTasks, scale: TimeScale, story: RunViewModel) -> TimelineLine:
    end = story.now if group.is_open else group.end
    tone = "failed" if any(status_tone(status) == "failed" for status in group.counts) else "completed"
    bar = TimelineSegment(
        "work many", "leased" if group.is_open else tone, *scale.stretch(group.begin, end), _alike(group.total)
    )
    return TimelineLine(
        seq=group.first_seq,
        name=group.name,
        kind=f"{group.type} · {_alike(group.total)}",
        address=story.asked.address(only=group.name, page=None, task=NOTHING),
        badges=tuple(badge(status) for status in sorted(group.counts)),
        waited="",
        took=format_duration(end - group.begin),
        segments=(bar,) if scale.holds(group.begin, end) else (),
        is_group=True,
    )


def _alike(count: int) -> str:
    return ngettext("%(count)s task alike", "%(count)s tasks alike", count) % {"count": format_count(count)}


def _with_children(
    lines: list[TimelineLine], drawn: list[TaskRow], scale: TimeScale, story: RunViewModel
) -> list[TimelineLine]:
    """The tasks of sub-workflows behind the tasks that started them."""
    children = {row.last.child_id: row.task.seq for row in drawn if row.last and row.last.child_id}
    some = dict(list(children.items())[:MOST_CHILDREN])
    tasks = list(
        Task.objects.filter(run_id__in=some)
        .defer("step_state")
        .order_by("run_id", "seq")[: MOST_CHILDREN * MOST_OF_A_CHILD]
    )
    below: dict[int, list[TimelineLine]] = {}
    drawn = task_rows(tasks, attempts_of(tasks), scale, story.now)
    on_path = paths_below(drawn, {line.seq for line in lines if line.is_critical}, some, story.now)
    for row in drawn:
        shown = below.setdefault(some[row.task.run_id], [])
        if len(shown) < MOST_OF_A_CHILD:
            shown.append(replace(_of_child(row, story), is_critical=row.task.pk in on_path))
    return [each for line in lines for each in (line, *below.get(line.seq, ()))]


def _with_path(lines: list[TimelineLine], path: list[TaskSpan]) -> list[TimelineLine]:
    """The lines, those on the critical path marked; tasks alike, where one of them is."""
    keys, names = {link.key for link in path}, {link.name for link in path}
    return [replace(line, is_critical=line.name in (names if line.is_group else keys)) for line in lines]


def _of_child(row: TaskRow, story: RunViewModel) -> TimelineLine:
    there = run_address(row.task.run_id) + f"?task={row.task}"
    return replace(_line(row, story), address=there, depth=1, is_chosen=False, is_slow=False)


def _first_failed(story: RunViewModel) -> str:
    """Where a jump to what failed leads."""
    failed: str = story.why.task if story.run.failed_attempt_id else ""
    return story.asked.address(task=failed, attempt=None, **{"from": None, "to": None}) if failed else ""
