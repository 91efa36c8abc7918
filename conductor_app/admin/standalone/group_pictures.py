"""Timeline and dependency diagram of a group. Both mark the critical path."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...insight.definitions.diagram import DiagramNode
from ...insight.durations import format_duration
from ...insight.runs.time_scale import zoom_scale
from ...insight.standalone.task_groups.bars import MAX_ROWS, TimelineRow, group_span, order_members, timeline_rows
from ...insight.standalone.task_groups.graph import build_graph
from ...insight.standalone.task_groups.picture import draw_group
from ..badges import format_count, render_badge
from ..pictures import style_node
from ..zoom import zoom_links
from .group_view_model import GroupViewModel, filter_context
from .page_addresses import standalone_task_address


def chain_context(view_model: GroupViewModel) -> dict[str, Any]:
    """Return the summary of the critical path, and the link that isolates it."""
    chain = view_model.chain
    summary = ngettext(
        "Critical path: %(count)s task, %(span)s, of which %(waited)s queued.",
        "Critical path: %(count)s tasks, %(span)s, of which %(waited)s queued.",
        len(chain.ids),
    )
    facts = {
        "count": format_count(len(chain.ids)),
        "span": format_duration(chain.total_ms),
        "waited": format_duration(chain.waited),
    }
    return {
        "chain": summary % facts if chain.ids else "",
        "is_chain_alone": bool(view_model.query["chain"]),
        "chain_address": view_model.query.address(chain=None if view_model.query["chain"] else "1"),
    }


def timeline_tab(view_model: GroupViewModel) -> dict[str, Any]:
    """Return one row per task, or one row for similar tasks."""
    full_scale = group_span(view_model.members, view_model.now)
    scale = zoom_scale(full_scale, view_model.query.number("from"), view_model.query.number("to"))
    page, pages, visible = _page_of_members(view_model)
    rows = timeline_rows(visible, frozenset(view_model.chain.ids), scale, view_model.now)
    return {
        "lines": [_timeline_line(row, view_model) for row in rows],
        "ticks": scale.ticks(full_scale.begin),
        "is_zoomed": scale != full_scale,
        "zoom": zoom_links(scale, full_scale, view_model.query.address),
        "earlier": view_model.query.address(page=page - 1) if page > 1 else "",
        "later": view_model.query.address(page=page + 1) if page < pages else "",
        **filter_context(view_model),
        **chain_context(view_model),
    }


def _page_of_members(view_model: GroupViewModel) -> tuple[int, int, list[Any]]:
    """Return one page of similar tasks if the address requests them, otherwise all tasks."""
    if not view_model.query["only"] or len(view_model.visible_members) <= MAX_ROWS:
        return 1, 1, view_model.visible_members
    pages = -(-len(view_model.visible_members) // MAX_ROWS)
    page = min(max(view_model.query.number("page") or 1, 1), pages)
    return page, pages, order_members(view_model.visible_members)[(page - 1) * MAX_ROWS : page * MAX_ROWS]


def _timeline_line(row: TimelineRow, view_model: GroupViewModel) -> dict[str, Any]:
    [*some] = row.members
    if len(some) == 1 and not row.kind:
        return _single_task_line(row, view_model)
    states = sorted({each.state for each in some})
    return {
        "name": row.name,
        "kind": ngettext("%(count)s similar task", "%(count)s similar tasks", len(some))
        % {"count": format_count(len(some))},
        "address": view_model.query.address(only=row.kind or None, page=None),
        "is_group": True,
        "badges": [render_badge(state) for state in states],
        "segments": row.segments,
        "is_critical": row.is_critical,
    }


def _single_task_line(row: TimelineRow, view_model: GroupViewModel) -> dict[str, Any]:
    member = row.members[0]
    worked = member.last is not None and member.last.started_at is not None
    return {
        "name": row.name,
        "kind": ngettext("%(count)s attempt", "%(count)s attempts", len(member.attempts))
        % {"count": len(member.attempts)}
        if len(member.attempts) > 1
        else "",
        "address": standalone_task_address(member.id),
        "badges": [render_badge(member.state)],
        "waited": format_duration(member.waited(view_model.now)) if member.attempts else "",
        "duration": format_duration(member.ran(view_model.now)) if worked else "",
        "segments": row.segments,
        "is_critical": row.is_critical,
    }


def diagram_tab(view_model: GroupViewModel) -> dict[str, Any]:
    """Return the dependencies among the visible tasks."""
    visible = view_model.visible_members
    graph = view_model.graph
    if len(visible) < len(view_model.members):
        visible_ids = {each.id for each in visible}
        graph = build_graph([each.id for each in visible], _edges_among(view_model, visible_ids))
    picture = draw_group(visible, graph, view_model.chain, view_model.now)
    for node in picture.nodes:
        style_node(node)
        node.href = _box_address(node, view_model)
    return {"picture": picture, "name": _("Dependencies"), **filter_context(view_model), **chain_context(view_model)}


def _box_address(node: DiagramNode, view_model: GroupViewModel) -> str:
    if node.counts:
        return view_model.query.address(only=node.ref if node.selects else None)
    return standalone_task_address(node.ref)


def _edges_among(view_model: GroupViewModel, visible_ids: set[str]) -> list[tuple[str, str]]:
    before = view_model.graph.before
    return [(needed, id) for id in visible_ids for needed in before[id] if needed in visible_ids]
