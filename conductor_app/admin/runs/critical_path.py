"""The critical path on a timeline: which rows are links of it, and which links took longest."""

from typing import Any

from ...insight.critical_path import TaskSpan, critical_path, task_span
from ...insight.durations import format_duration
from ...insight.timeline import TaskRow
from .run_view_model import RunViewModel

MAX_LINKS = 12
"""Links that are named above the rows: those that took longest."""


def critical_path_context(path: list[TaskSpan] | None, view_model: RunViewModel) -> dict[str, Any]:
    """The toggle, and the links of the chain that took time: how long each, and how much of the whole they are."""
    shows = bool(view_model.query["critical"])
    context: dict[str, Any] = {
        "shows_path": shows,
        "path_address": view_model.query.address(critical="" if shows else "1"),
        "is_path_unknown": shows and not path,
    }
    if not path:
        return context
    longest = sorted((link for link in path if link.duration_ms), key=lambda link: -link.duration_ms)[:MAX_LINKS]
    named = sorted(longest, key=lambda link: link.seq)
    whole = max((view_model.run.ended_at or view_model.now) - view_model.run.created_at, 1)
    return context | {
        "links": [
            (link, format_duration(link.duration_ms), view_model.query.address(task=link.key, attempt=None))
            for link in named
        ],
        "link_count": len(path),
        "path_share": min(round(100 * sum(link.duration_ms for link in path) / whole), 100),
    }


def critical_below(drawn: list[TaskRow], critical: set[int], parents: dict[str, int], now: int) -> set[str]:
    """The tasks on the paths of those sub-workflows whose own tasks, by their numbers, are on the path."""
    runs: dict[str, list[TaskRow]] = {}
    for row in drawn:
        if parents[row.task.run_id] in critical:
            runs.setdefault(row.task.run_id, []).append(row)
    found = set()
    for own in runs.values():
        by_key = {str(row.task): row.task.pk for row in own}
        path = critical_path(task_span(row.task, row.last.ended_at if row.last else None, now) for row in own)
        found |= {by_key[link.key] for link in path}
    return found
