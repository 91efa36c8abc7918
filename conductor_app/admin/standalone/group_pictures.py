"""The two pictures of a group: its timeline, and what needs what; the longest chain is marked in both."""

from typing import Any

from django.utils.translation import ngettext

from ...insight.durations import format_duration
from ...insight.task_groups.bars import MOST_ROWS, TimelineRow, group_span, order_members, timeline_rows
from ...insight.task_groups.graph import build_graph
from ...insight.task_groups.members import URGENCY
from ...insight.task_groups.picture import GroupBox, draw_group
from ...insight.timeline import zoom_scale
from ..badges import ICONS, badge, format_count, status_tone
from ..zoom import zoom_links
from .addresses import standalone_address
from .group_view_model import GroupViewModel, filter_context


def chain_context(story: GroupViewModel) -> dict[str, Any]:
    """What is said of the longest chain, and the way to it alone."""
    chain = story.chain
    words = ngettext(
        "Longest chain: %(count)s task, %(span)s, of which it waited %(waited)s in queues.",
        "Longest chain: %(count)s tasks, %(span)s, of which they waited %(waited)s in queues.",
        len(chain.ids),
    )
    facts = {
        "count": format_count(len(chain.ids)),
        "span": format_duration(chain.took),
        "waited": format_duration(chain.waited),
    }
    return {
        "chain": words % facts if chain.ids else "",
        "is_chain_alone": bool(story.asked["chain"]),
        "chain_address": story.asked.address(chain=None if story.asked["chain"] else "1"),
    }


def timeline_tab(story: GroupViewModel) -> dict[str, Any]:
    """A row a task, or a row for tasks alike."""
    whole = group_span(story.members, story.now)
    scale = zoom_scale(whole, story.asked.number("from"), story.asked.number("to"))
    page, pages, shown = _page(story)
    drawn = timeline_rows(shown, frozenset(story.chain.ids), scale, story.now)
    return {
        "lines": [_line(row, story) for row in drawn],
        "ticks": scale.ticks(whole.begin),
        "is_zoomed": scale != whole,
        "zoom": zoom_links(scale, whole, story.asked.address),
        "earlier": story.asked.address(page=page - 1) if page > 1 else "",
        "later": story.asked.address(page=page + 1) if page < pages else "",
        **filter_context(story),
        **chain_context(story),
    }


def _page(story: GroupViewModel) -> tuple[int, int, list[Any]]:
    """Of tasks alike that were asked for, so many at a time as can be drawn; else all."""
    if not story.asked["only"] or len(story.visible_members) <= MOST_ROWS:
        return 1, 1, story.visible_members
    pages = -(-len(story.visible_members) // MOST_ROWS)
    page = min(max(story.asked.number("page") or 1, 1), pages)
    return page, pages, order_members(story.visible_members)[(page - 1) * MOST_ROWS : page * MOST_ROWS]


def _line(row: TimelineRow, story: GroupViewModel) -> dict[str, Any]:
    [*some] = row.members
    if len(some) == 1 and not row.kind:
        return _of_one(row, story)
    states = sorted({each.state for each in some})
    return {
        "name": row.name,
        "kind": ngettext("%(count)s task alike", "%(count)s tasks alike", len(some))
        % {"count": format_count(len(some))},
        "address": story.asked.address(only=row.kind or None, page=None),
        "is_group": True,
        "badges": [badge(state) for state in states],
        "segments": row.segments,
        "is_critical": row.is_critical,
    }


def _of_one(row: TimelineRow, story: GroupViewModel) -> dict[str, Any]:
    member = row.members[0]
    worked = member.last is not None and member.last.started_at is not None
    return {
        "name": row.name,
        "kind": ngettext("%(count)s attempt", "%(count)s attempts", len(member.tries)) % {"count": len(member.tries)}
        if len(member.tries) > 1
        else "",
        "address": standalone_address(member.id),
        "badges": [badge(member.state)],
        "waited": format_duration(member.waited(story.now)) if member.tries else "",
        "took": format_duration(member.ran(story.now)) if worked else "",
        "segments": row.segments,
        "is_critical": row.is_critical,
    }


def diagram_tab(story: GroupViewModel) -> dict[str, Any]:
    """What needs what among the tasks that are shown."""
    shown = story.visible_members
    graph = story.graph
    if len(shown) < len(story.members):
        kept = {each.id for each in shown}
        graph = build_graph([each.id for each in shown], _edges_among(story, kept))
    drawn = draw_group(shown, graph, story.chain)
    for box in drawn.boxes:
        _look(box, story)
    return {"picture": drawn, **filter_context(story), **chain_context(story)}


def _edges_among(story: GroupViewModel, kept: set[str]) -> list[tuple[str, str]]:
    before = story.graph.before
    return [(needed, id) for id in kept for needed in before[id] if needed in kept]


def _look(box: GroupBox, story: GroupViewModel) -> None:
    """Its colour, its sign, and where it leads."""
    box.tone = status_tone(box.state)
    box.words = box_subtitle(box)
    box.icon = ICONS.get(box.state, box.tone)
    box.href = story.asked.address(only=box.kind) if box.total > 1 or box.kind else standalone_address(box.id)


def box_subtitle(box: GroupBox) -> str:
    """What stands below the name of a box."""
    if box.total == 1:
        return box.state.replace("_", " ").capitalize()
    counts = [(state, box.counts[state]) for state in URGENCY if state in box.counts]
    return ", ".join(f"{format_count(count)} {state.replace('_', ' ').lower()}" for state, count in counts)
