"""What the tabs of a group share: progress, failures and the filtered tasks; its timeline and its diagram."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...definitions.diagram.canvas import DiagramNode
from ...definitions.diagram.pages import style_node
from ...runs.models import PulseMessage
from ...settings import conf
from ...utils import clock
from ...utils.formatting import format_duration
from ...utils.time_scale import zoom_scale
from ...web.badges import ACTIVE, FAILED, SUCCEEDED, WAITING, format_count, mark_names, render_badge, status_tone
from ...web.charts import zoom_links
from ...web.links import standalone_task_address
from ...web.pages import PageQuery
from ..models import GroupWatch, TaskGroup
from ..queries.groups import (
    MAX_ROWS,
    URGENCY,
    DependencyGraph,
    GroupMember,
    GroupProgress,
    LongestChain,
    TimelineRow,
    build_graph,
    draw_group,
    group_progress,
    group_span,
    load_edges,
    load_members,
    longest_chain,
    matches_pattern,
    most_urgent_first,
    order_members,
    timeline_rows,
)

WAITING_TONE = "waiting"


def progress_bar(tally: GroupProgress) -> SafeString:
    """Return the bar with the shares of all states except waiting."""
    parts, left = [], 0.0
    for tone, count in _tone_shares(tally):
        width = 100 * count / tally.total
        parts.append((tone, f"{left:.2f}%", f"{width:.2f}%"))
        left += width
    rects = format_html_join("", '<rect class="{}" x="{}" width="{}" height="8"></rect>', parts)
    label = _("%(resolved)s of %(total)s tasks are resolved") % {
        "resolved": format_count(tally.resolved),
        "total": format_count(tally.total),
    }
    return format_html(
        '<svg class="progress" width="100%" height="8" role="img" aria-label="{}">'
        '<rect width="100%" height="8"></rect>{}</svg>',
        label,
        rects,
    )


def _tone_shares(tally: GroupProgress) -> list[tuple[str, int]]:
    """Return the number of tasks per color. Without counts per state, return the number of resolved tasks."""
    if not tally.states:
        return [(SUCCEEDED, tally.resolved)] if tally.total else []
    counts: dict[str, int] = {}
    for state, count in tally.parts:
        counts[status_tone(state)] = counts.get(status_tone(state), 0) + count
    order = sorted(counts, key=lambda tone: (tone != SUCCEEDED, tone == ACTIVE))
    return [(tone, counts[tone]) for tone in order if tone != WAITING_TONE]


MAX_SEARCH_LENGTH = 200
POLL_INTERVAL_MS = 5_000


class GroupPageQuery(PageQuery):
    """Query parameters of a group's page."""

    parameters: ClassVar[tuple[str, ...]] = ("tab", "state", "q", "only", "chain", "part", "from", "to")

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name).replace("\0", "")[:MAX_SEARCH_LENGTH]

    @property
    def state(self) -> str:
        return self["state"] if self["state"] in URGENCY else ""


@dataclass(frozen=True)
class GroupViewModel:
    """A group, the current time, and the query parameters."""

    group: TaskGroup
    query: GroupPageQuery
    now: int

    @cached_property
    def tally(self) -> GroupProgress:
        return group_progress(self.group.pk)

    @cached_property
    def part(self) -> tuple[list[GroupMember], bool]:
        """Return the tasks that are loaded together, and whether there are more."""
        return load_members(self.group.pk, self.query["part"])

    @property
    def members(self) -> list[GroupMember]:
        """Return all tasks of the group, or the part that the address names if there are too many."""
        return self.part[0]

    @cached_property
    def graph(self) -> DependencyGraph:
        """Return the dependencies among the loaded tasks."""
        ids = [each.id for each in self.members]
        return build_graph(ids, load_edges(self.group.pk, ids[0], ids[-1]) if ids else ())

    @cached_property
    def chain(self) -> LongestChain:
        """Return the critical path among the loaded tasks."""
        return longest_chain(self.members, self.graph, self.now)

    @cached_property
    def visible_members(self) -> list[GroupMember]:
        """Return the tasks that match the filter."""
        state, word, only = self.query.state, self.query["q"].lower(), self.query["only"]
        chain = self.chain.ids if self.query["chain"] else None
        return [
            each
            for each in self.members
            if (not state or each.state == state)
            and (not word or word in each.name.lower())
            and (not only or matches_pattern(each, only))
            and (chain is None or each.id in chain)
        ]

    @property
    def next_part(self) -> str:
        """Return the start of the next part of a group that is too large to be loaded at once."""
        return self.members[-1].id if self.part[1] else ""

    @property
    def is_over(self) -> bool:
        """Return True if the group's state can no longer change by itself."""
        return self.group.sealed_at is not None and self.tally.is_resolved


def group_view_model(group: TaskGroup, values: Mapping[str, str]) -> GroupViewModel:
    """Return the view model for an address."""
    return GroupViewModel(group, GroupPageQuery(values), clock.now())


def group_revision(group_id: str, now: int) -> str:
    """Return a value that changes with the group, without reading its tasks: each transition writes a message."""
    last = PulseMessage.objects.filter(group_id=group_id).order_by("-id").values_list("id", flat=True).first()
    # If an exchange consumes the messages, only reading the tasks shows changes.
    every = POLL_INTERVAL_MS if conf.taskcluster_amqp_url else 3 * POLL_INTERVAL_MS
    return f"{last or 0}-{now // every}"


def head_context(view_model: GroupViewModel) -> dict[str, Any]:
    """Return the context of the header above the tabs."""
    tone, sentence = _state_sentence(view_model)
    return {
        "group": view_model.group,
        "query": view_model.query,
        "progress_counts": view_model.tally,
        "is_over": view_model.is_over,
        "tone": tone,
        "sentence": mark_names(sentence),
        "watches": list(GroupWatch.objects.filter(group_id=view_model.group.pk, notified_at=None).order_by("id")),
        "progress": progress_bar(view_model.tally),
        "chips": _state_chips(view_model),
        "all_kinds": view_model.query.address(only=None),
        "all_chains": view_model.query.address(chain=None),
        "facts": _group_facts(view_model),
        "next_part": view_model.query.address(part=view_model.next_part) if view_model.next_part else "",
        "first_part": view_model.query.address(part=None) if view_model.query["part"] else "",
    }


def _state_chips(view_model: GroupViewModel) -> list[tuple[SafeString | str, int, str, bool]]:
    """Return the number of tasks per state, each as a filter."""
    query = view_model.query
    every = [("", view_model.tally.total), *view_model.tally.parts]
    return [
        (render_badge(state) if state else _("All"), count, query.address(state=state or None), state == query.state)
        for state, count in every
    ]


def _state_sentence(view_model: GroupViewModel) -> tuple[str, str]:
    """Return the display group and the text of the group's state."""
    counted = view_model.tally
    if not counted.total:
        if view_model.group.sealed_at is not None:
            return "stopped", _("The group is sealed and has no tasks.")
        return WAITING, _("No tasks yet.")
    if counted.failed:
        return FAILED, _failed_note(view_model)
    if counted.is_resolved:
        return SUCCEEDED, _progress_note(view_model)
    return ACTIVE if counted.states.get("LEASED") else WAITING, _open_note(counted)


def _failed_note(view_model: GroupViewModel) -> str:
    bad = [each for each in view_model.members if each.ended_badly and each.ended_at is not None]
    counts = {"count": format_count(view_model.tally.failed), "total": format_count(view_model.tally.total)}
    summary = _("%(count)s of %(total)s tasks failed.") % counts
    if not bad:
        return summary
    first = min(bad, key=lambda each: (each.ended_at, each.id))
    detail = _("First: `%(name)s` (%(reason)s).") % {"name": first.name, "reason": _member_reason(first)}
    return f"{summary} {detail}"


def _member_reason(member: GroupMember) -> str:
    return (member.last.reason if member.last else "") or member.state.lower()


def _progress_note(view_model: GroupViewModel) -> str:
    starts = [each.began_at for each in view_model.members if each.began_at is not None]
    ended = [each.ended_at for each in view_model.members if each.ended_at is not None]
    took = format_duration(max(ended) - min(starts)) if starts and ended else "–"
    return ngettext("Completed in %(span)s.", "All %(total)s tasks completed in %(span)s.", view_model.tally.total) % {
        "total": format_count(view_model.tally.total),
        "span": took,
    }


def _open_note(counted: GroupProgress) -> str:
    return _(
        "%(resolved)s of %(total)s tasks resolved; %(out)s running, %(queued)s pending, %(blocked)s unscheduled."
    ) % {
        "resolved": format_count(counted.resolved),
        "total": format_count(counted.total),
        "out": format_count(counted.states.get("LEASED", 0)),
        "queued": format_count(counted.states.get("PENDING", 0)),
        "blocked": format_count(counted.states.get("BLOCKED", 0)),
    }


def _group_facts(view_model: GroupViewModel) -> list[tuple[str, Any]]:
    open_until = {each.deadline_at for each in view_model.members if each.is_open}
    deadlines = [(_("Next deadline"), min(open_until)), (_("Last deadline"), max(open_until))] if open_until else []
    return [
        *(deadlines if len(open_until) > 1 else [(_("Deadline"), at) for at in open_until]),
        (_("Created"), view_model.group.created_at),
        (_("Expires"), view_model.group.expires_at),
    ]


def load_task_page(view_model: GroupViewModel, count: int) -> tuple[list[GroupMember], str]:
    """Return the tasks of one page, and the start of the next page."""
    found = most_urgent_first(view_model.visible_members, view_model.query.values.get("after", ""), count + 1)
    return found[:count], found[count - 1].id if len(found) > count else ""


def filter_context(view_model: GroupViewModel) -> dict[str, Any]:
    """Return whether the address filters tasks, and the address without the filter."""
    query = view_model.query
    return {
        "is_filtered": bool(query.state or query["q"] or query["only"] or query["chain"]),
        "unfiltered": query.address(state=None, q=None, only=None, chain=None),
    }


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
