"""The timeline of a run: the tree of its tasks with a bar for each, the strip of its whole life, and its revisions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from ...insight.runs.history_replay import RunAtRevision, run_at_revision
from ...insight.runs.task_spans import MAX_SPANS
from ...insight.runs.time_scale import Stretch, TimeScale, collapse_idle, overlap, zoom_scale
from ...insight.runs.tree_loading import LoadedTree, is_busy, is_held_type, load_tree
from ...insight.runs.tree_rows import Folding, TreeRow, has_child_run
from ...insight.tasks.attempt_waits import CONTAINER_STEP_TYPES
from ..badges import render_badge
from ..zoom import zoom_links
from .critical_path import critical_nodes, critical_path_context, visible_path
from .life_strip import life_strip
from .revision_slider import revision_slider
from .run_view_model import NO_TASK, RunViewModel
from .timeline_lines import LineBuilder

ROWS_ON_PAGE = 300


@dataclass(frozen=True, slots=True)
class RowWindow:
    """One page of the rows."""

    rows: Sequence[TreeRow]
    page: int
    total: int

    @property
    def pages(self) -> int:
        return max(-(-self.total // ROWS_ON_PAGE), 1)

    @property
    def first(self) -> int:
        return (self.page - 1) * ROWS_ON_PAGE + 1

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1


def timeline_tab(view_model: RunViewModel) -> dict[str, Any]:
    """Return the context of the tab."""
    query = view_model.query
    past = requested_past(view_model)
    tree = load_tree(view_model.run, requested_folding(view_model), view_model.now, past)
    whole = run_scale(tree, view_model)
    scale = collapse_idle(
        zoom_scale(whole, query.number("from"), query.number("to")), busy_stretches(tree, whole.lives)
    )
    window = row_window(tree.rows, query.number("page"), view_model.chosen)
    path = visible_path(tree, view_model)
    builder = LineBuilder(
        view_model, scale, critical_nodes(tree, path), window.page, past.at if past else view_model.now
    )
    is_zoomed = (scale.begin, scale.end) != (whole.begin, whole.end)
    full = collapse_idle(whole, busy_stretches(tree, whole.lives))
    return {
        "window": window,
        "lines": builder.lines_of(window.rows),
        "ticks": scale.ticks(whole.begin),
        "gaps": [
            (gap, _gap_label(tree, scale.gaps[number], gap.label)) for number, gap in enumerate(scale.axis_gaps())
        ],
        "is_zoomed": is_zoomed,
        "zoom": zoom_links(scale, whole, query.address),
        "has_children": any(has_child_run(row.node) for row in tree.rows),
        "children_address": query.address(children="" if query["children"] else "1"),
        "shows_children": bool(query["children"]),
        "first_failed": _first_failed_address(view_model),
        "missing_tasks": MAX_SPANS if tree.is_cut else 0,
        "tasks_address": query.address(tab="tasks", page=None),
        "strip": life_strip(tree, full, scale if is_zoomed else None, view_model),
        **revision_slider(view_model, past),
        **critical_path_context(path, view_model),
        **_window_links(window, view_model),
        **_status_chips(tree, view_model),
    }


def requested_past(view_model: RunViewModel) -> RunAtRevision | None:
    """Return the run at the revision in the address; None for the newest one, or if it cannot be reconstructed."""
    revision = view_model.query.number("revision")
    if revision is None or revision >= view_model.run.revision:
        return None
    return run_at_revision(view_model.run.pk, max(revision, 1))


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


def run_scale(tree: LoadedTree, view_model: RunViewModel) -> TimeScale:
    """Return the scale of the whole life of a run, up to the revision that the tree shows."""
    lives = view_model.lives
    end = tree.past.at if tree.past else lives[-1].end
    closed = tuple((life.begin, min(life.end, end)) for life in lives if life.begin <= end)
    begin = min(lives[0].begin, end - 1)
    return TimeScale(begin, max(end, begin + 1), (), closed if len(lives) > 1 else ())


def busy_stretches(tree: LoadedTree, lives: Sequence[Stretch]) -> list[Stretch]:
    """Return the times in which a worker or a queue had a task, or a sub-workflow was open."""
    spans = [(span.begin, span.end) for span in tree.spans if is_busy(span)]
    if not lives:
        return spans
    return [part for span in spans for life in lives if (part := overlap(span, life))]


def row_window(rows: Sequence[TreeRow], page: int | None, chosen: str) -> RowWindow:
    """Return the page of the rows, by default the one with the selected task."""
    pages = max(-(-len(rows) // ROWS_ON_PAGE), 1)
    if page is None:
        index = next((number for number, row in enumerate(rows) if chosen and row.id == chosen), 0)
        page = index // ROWS_ON_PAGE + 1
    page = min(max(page, 1), pages)
    return RowWindow(rows[(page - 1) * ROWS_ON_PAGE : page * ROWS_ON_PAGE], page, len(rows))


def _gap_label(tree: LoadedTree, gap: Stretch, duration: str) -> str:
    """Return the label of a collapsed time: the run waited for a person, a time or an event, or it was idle."""
    waits = any(
        span.begin <= gap[0] and span.end >= gap[1] and is_held_type(span.type)
        for span in tree.spans
        if span.type not in CONTAINER_STEP_TYPES
    )
    return (_("%(span)s waiting") if waits else _("%(span)s idle")) % {"span": duration}


def _window_links(window: RowWindow, view_model: RunViewModel) -> dict[str, Any]:
    query = view_model.query
    return {
        "earlier": query.address(page=window.page - 1) if window.page > 1 else "",
        "later": query.address(page=window.page + 1) if window.page < window.pages else "",
        "unfiltered_address": query.address(status=None, page=None),
    }


def _status_chips(tree: LoadedTree, view_model: RunViewModel) -> dict[str, Any]:
    """Return the filters by status."""
    counts = Counter(span.status for span in tree.spans)
    every = [("", sum(counts.values())), *sorted(counts.items())]
    status = view_model.query["status"]
    return {
        "chips": [
            {
                "label": _("All"),
                "badge": render_badge(each) if each else None,
                "count": count,
                "address": view_model.query.address(status=each, page=None, task=NO_TASK),
                "is_chosen": each == status,
            }
            for each, count in every
        ],
        "status": status,
    }


def _first_failed_address(view_model: RunViewModel) -> str:
    """Return the address that selects the first failed task."""
    failed: str = view_model.cause.task if view_model.run.failed_attempt_id else ""
    return view_model.query.address(task=failed, attempt=None, **{"from": None, "to": None}) if failed else ""
