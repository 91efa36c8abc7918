"""The critical path on a timeline: which rows are links of it, and which links took longest."""

from typing import Any

from ...insight.critical_path import TaskSpan, critical_path, task_span
from ...insight.durations import format_duration
from ...insight.timeline import TaskRow
from .run_view_model import RunViewModel

MOST_LINKS = 12
"""Links that are named above the rows: those that took longest."""


def critical_path_context(path: list[TaskSpan] | None, story: RunViewModel) -> dict[str, Any]:
    """The toggle, and the links of the chain that took time: how long each, and how much of the whole they are."""
    shows = bool(story.asked["critical"])
    shown: dict[str, Any] = {
        "shows_path": shows,
        "path_address": story.asked.address(critical="" if shows else "1"),
        "is_path_unknown": shows and not path,
    }
    if not path:
        return shown
    longest = sorted((link for link in path if link.length), key=lambda link: -link.length)[:MOST_LINKS]
    named = sorted(longest, key=lambda link: link.seq)
    whole = max((story.run.ended_at or story.now) - story.run.created_at, 1)
    return shown | {
        "links": [
            (link, format_duration(link.length), story.asked.address(task=link.key, attempt=None)) for link in named
        ],
        "link_count": len(path),
        "path_share": min(round(100 * sum(link.length for link in path) / whole), 100),
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
