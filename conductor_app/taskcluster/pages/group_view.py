"""View model of a task group that all tabs share: progress, failures, and the filtered tasks."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ... import clock, conf
from ...insight.durations import format_duration
from ...insight.standalone.task_groups.critical import LongestChain, longest_chain
from ...insight.standalone.task_groups.graph import DependencyGraph, build_graph, load_edges
from ...insight.standalone.task_groups.members import URGENCY, GroupMember, load_members, most_urgent_first
from ...insight.standalone.task_groups.name_patterns import matches_pattern
from ...insight.standalone.task_groups.progress import GroupProgress, group_progress
from ...models import GroupWatch, PulseMessage, TaskGroup
from ..badges import ACTIVE, FAILED, SUCCEEDED, WAITING, format_count, mark_names, render_badge
from ..page_query import PageQuery
from .group_progress import progress_bar

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
