"""The strip above a run's timeline: its whole life with all reruns, its load, failures and the visible part."""

from dataclasses import dataclass
from math import ceil
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...insight.durations import format_duration
from ...insight.runs.run_lives import RunLife
from ...insight.runs.run_tree import FAILED, state_of
from ...insight.runs.task_spans import TaskSpan
from ...insight.runs.time_scale import TimeScale
from ...insight.runs.tree_loading import LoadedTree, is_held_type
from ..badges import format_status, status_tone
from ..zoom import axis_points
from .run_view_model import RunViewModel

COLUMNS = 120
"""Columns of the load."""
HEIGHT = 26
"""Height of the highest column in pixels."""
LIFE_NAMES = {
    "": gettext_lazy("First execution"),
    "retry": gettext_lazy("Retry"),
    "rerun": gettext_lazy("Rerun"),
    "restart": gettext_lazy("Restart"),
    "reopen": gettext_lazy("Reopened"),
}


@dataclass(frozen=True, slots=True)
class LifeBand:
    """One life of the run on the strip."""

    left: str
    width: str
    text: str
    title: str
    tone: str
    address: str
    is_shown: bool


def life_strip(tree: LoadedTree, full: TimeScale, part: TimeScale | None, view_model: RunViewModel) -> dict[str, Any]:
    """Return the strip. `part`: the visible part of the scale, if the timeline is zoomed."""
    working = [span for span in tree.spans if not is_held_type(span.type)]
    failed = [span for span in working if state_of(span.status) == FAILED]
    return {
        "bands": [_life_band(life, full, view_model, tree) for life in view_model.lives if life.begin <= full.end],
        "columns": _load_columns(working, full),
        "failures": sorted({f"{full.percent_of(span.end):.1f}%" for span in failed}),
        "gaps": full.axis_gaps(),
        "part": full.extent(part.begin, part.end) if part else None,
        "points": axis_points(full, full.begin),
        "is_useful": len(view_model.lives) > 1 or len(tree.spans) > 1,
    }


def _life_band(life: RunLife, full: TimeScale, view_model: RunViewModel, tree: LoadedTree) -> LifeBand:
    end = min(life.end, full.end)
    left, width = full.extent(life.begin, end)
    name, duration = str(LIFE_NAMES.get(life.event, life.event)), format_duration(end - life.begin)
    by = _("by %(user)s") % {"user": life.by} if life.by and life.event else ""
    is_last = life is view_model.lives[-1]
    shown = tree.past.revision if tree.past else view_model.run.revision
    address = view_model.query.address(revision=None if is_last else life.last_revision, **{"from": None, "to": None})
    return LifeBand(
        left,
        width,
        f"{name} · {duration}" if len(view_model.lives) > 1 else "",
        " · ".join(filter(None, (name, by, format_status(life.status), duration))),
        status_tone(life.status),
        address if len(view_model.lives) > 1 else "",
        shown == life.last_revision,
    )


def _load_columns(spans: list[TaskSpan], scale: TimeScale) -> list[tuple[str, str, int, int]]:
    """Return the number of open tasks over time as columns: left edge, width, top and height."""
    changes = [0] * (COLUMNS + 1)
    for span in spans:
        # A column counts the tasks that are open at its middle. A shorter task counts in the column of its start.
        begin, end = (scale.percent_of(moment) * COLUMNS / 100 for moment in (span.begin, span.end))
        first = min(ceil(begin - 0.5), COLUMNS - 1)
        last = min(max(ceil(end - 0.5) - 1, first), COLUMNS - 1)
        changes[first] += 1
        changes[last + 1] -= 1
    loads, load = [], 0
    for change in changes[:-1]:
        load += change
        loads.append(load)
    most = max([*loads, 1])
    found = []
    begin = 0
    for number in range(1, COLUMNS + 1):
        if number < COLUMNS and loads[number] == loads[begin]:
            continue
        if loads[begin]:
            height = max(round(HEIGHT * loads[begin] / most), 3)
            left, width = 100 * begin / COLUMNS, 100 * (number - begin) / COLUMNS
            found.append((f"{left:.2f}%", f"{width:.2f}%", HEIGHT - height, height))
        begin = number
    return found
