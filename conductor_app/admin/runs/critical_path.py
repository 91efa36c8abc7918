"""The critical path on a timeline: the rows that belong to it, and its longest links."""

from typing import Any

from ...insight.durations import format_duration
from ...insight.runs.critical_path import TaskSpan, critical_path, task_span
from ...insight.runs.timeline import TaskRow
from .run_view_model import RunViewModel

MAX_LINKS = 12
"""Number of links above the rows, longest first."""


def critical_path_context(path: list[TaskSpan] | None, view_model: RunViewModel) -> dict[str, Any]:
    """Return the toggle and the links of the critical path with their durations and their share of the run."""
    is_visible = bool(view_model.query["critical"])
    context: dict[str, Any] = {
        "shows_path": is_visible,
        "path_address": view_model.query.address(critical="" if is_visible else "1"),
        "is_path_unknown": is_visible and not path,
    }
    if not path:
        return context
    longest = sorted((link for link in path if link.duration_ms), key=lambda link: -link.duration_ms)[:MAX_LINKS]
    named = sorted(longest, key=lambda link: link.seq)
    run_ms = max((view_model.run.ended_at or view_model.now) - view_model.run.created_at, 1)
    return context | {
        "links": [
            (link, format_duration(link.duration_ms), view_model.query.address(task=link.key, attempt=None))
            for link in named
        ],
        "link_count": len(path),
        "path_share": min(round(100 * sum(link.duration_ms for link in path) / run_ms), 100),
    }


def critical_below(rows: list[TaskRow], critical: set[int], parents: dict[str, int], now: int) -> set[str]:
    """Return the critical tasks of sub-workflows whose SUB_WORKFLOW tasks are on the critical path."""
    runs: dict[str, list[TaskRow]] = {}
    for row in rows:
        if parents[row.task.run_id] in critical:
            runs.setdefault(row.task.run_id, []).append(row)
    found = set()
    for own in runs.values():
        by_key = {str(row.task): row.task.pk for row in own}
        path = critical_path(task_span(row.task, row.last.ended_at if row.last else None, now) for row in own)
        found |= {by_key[link.key] for link in path}
    return found
