"""The critical path on a timeline: the rows that belong to it, and its longest links."""

from typing import Any

from ...insight.durations import format_duration
from ...insight.runs.critical_path import critical_path, critical_path_among
from ...insight.runs.task_spans import TaskSpan
from ...insight.runs.tree_loading import CHILD_SEPARATOR, LoadedTree
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


def visible_path(tree: LoadedTree, view_model: RunViewModel) -> list[TaskSpan] | None:
    """Return the critical path if the address requests it; None if it is unknown or not requested."""
    if not view_model.query["critical"] or tree.is_cut:
        return None
    return critical_path_among(view_model.run, tree.spans)


def critical_nodes(tree: LoadedTree, path: list[TaskSpan] | None) -> set[str]:
    """Return the ids of the critical tasks, with those of expanded sub-workflows that are critical themselves."""
    critical = {link.key for link in path or ()}
    for node_id, spans in sorted(tree.child_spans.items()):
        if node_id in critical:
            critical |= {f"{node_id}{CHILD_SEPARATOR}{link.key}" for link in critical_path(spans)}
    return critical
