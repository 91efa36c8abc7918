"""Task groups for the pages: their tasks, progress, dependencies, longest chain, timeline and diagram.

The tasks of a group are read with few columns in two queries. Similar tasks are shown as one: those whose names differ
only in numbers, or begin with the same word.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from django.db.models import Count, Q

from ...definitions.diagram.canvas import (
    BOX_HEIGHT,
    LOW_BOX_HEIGHT,
    Diagram,
    DiagramEdge,
    DiagramNode,
    drop_shared_parts,
)
from ...definitions.diagram.layered_graph import draw_layered
from ...definitions.diagram.marks import StepMark
from ...runs.timeline.queries import GAP, WAIT, WORK, TimelineSegment
from ...utils.formatting import format_duration
from ...utils.time_scale import TimeScale
from ..models import Dependency, StandaloneTask
from .tasks import displayed_state

LIMIT = 20_000
"""Tasks that are read at once. Larger groups are read in parts, in the order of their ids."""
URGENCY = ("FAILED", "TIMED_OUT", "CANCELED", "LEASED", "PENDING", "BLOCKED", "COMPLETED")
"""States by urgency, most urgent first."""
ENDED_BADLY = ("FAILED", "TIMED_OUT", "CANCELED")
NUMBERS = re.compile("([0-9]+)")
COLUMNS = (
    "task_id", "task__name", "task__status", "queue", "priority", "task__created_at", "deadline_at", "ever_resolved",
)  # fmt: skip


class MemberAttempt(NamedTuple):
    """The columns of one attempt that pages show."""

    number: int
    status: str
    scheduled_at: int
    started_at: int | None
    ended_at: int | None
    worker: str
    reason: str

    def waited(self, now: int) -> int:
        """Return the time in the queue, in milliseconds."""
        until = self.started_at if self.started_at is not None else self.ended_at
        return (now if until is None else until) - self.scheduled_at

    def ran(self, now: int) -> int:
        """Return the time in progress, in milliseconds."""
        if self.started_at is None:
            return 0
        return (now if self.ended_at is None else self.ended_at) - self.started_at


class GroupMember(NamedTuple):
    """One task of a group. `state`: status of the last attempt if the task is active, else of the task."""

    id: str
    name: str
    state: str
    queue: str
    priority: int
    created_at: int
    deadline_at: int
    ever_resolved: bool
    attempts: tuple[MemberAttempt, ...]

    @property
    def last(self) -> MemberAttempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def began_at(self) -> int | None:
        """Return when the first attempt was scheduled, or None if there is none."""
        return self.attempts[0].scheduled_at if self.attempts else None

    @property
    def ended_at(self) -> int | None:
        return self.last.ended_at if self.last else None

    @property
    def is_open(self) -> bool:
        return self.last is None or self.last.ended_at is None

    @property
    def ended_badly(self) -> bool:
        return self.state in ENDED_BADLY

    def waited(self, now: int) -> int:
        """Return the total time of its attempts in queues, in milliseconds."""
        return sum(each.waited(now) for each in self.attempts)

    def ran(self, now: int) -> int:
        """Return the total time of its attempts in progress, in milliseconds."""
        return sum(each.ran(now) for each in self.attempts)


def load_members(group_id: str, after: str = "") -> tuple[list[GroupMember], bool]:
    """Return tasks of a group in the order of their ids, after an id, and True if there are more."""
    own = StandaloneTask.objects.filter(group_id=group_id, task_id__gt=after).order_by("task_id")
    rows = list(own.values_list(*COLUMNS)[: LIMIT + 1])
    has_more = len(rows) > LIMIT
    attempts = _load_attempts(group_id, after, rows[:LIMIT][-1][0]) if rows else {}
    return [_build_member(row, tuple(attempts.get(row[0], ()))) for row in rows[:LIMIT]], has_more


def _load_attempts(group_id: str, after: str, until: str) -> dict[str, list[MemberAttempt]]:
    own = StandaloneTask.objects.filter(group_id=group_id, task_id__gt=after, task_id__lte=until)
    columns = ("number", "status", "scheduled_at", "started_at", "ended_at", "worker", "reason")
    found: dict[str, list[MemberAttempt]] = {}
    attempts = own.filter(task__attempts__isnull=False).values_list(
        "task_id", *(f"task__attempts__{column}" for column in columns)
    )
    for task_id, *rest in attempts.order_by("task_id", "task__attempts__number").iterator(chunk_size=5_000):
        found.setdefault(task_id, []).append(MemberAttempt(*rest))
    return found


def _build_member(row: tuple, attempts: tuple[MemberAttempt, ...]) -> GroupMember:
    id, name, status, queue, priority, created_at, deadline_at, ever_resolved = row
    state = displayed_state(status, attempts[-1].status if attempts else None)
    return GroupMember(id, name or id, state, queue, priority, created_at, deadline_at, ever_resolved, attempts)


def most_urgent_first(members: Iterable[GroupMember], after: str = "", count: int = LIMIT) -> list[GroupMember]:
    """Return `count` members by urgency of their state and by name, after the member with the id `after`."""
    members_by_state: dict[str, list[GroupMember]] = {state: [] for state in URGENCY}
    begins_in, last = "", None
    for member in members:
        members_by_state.setdefault(member.state, []).append(member)
        if member.id == after:
            begins_in, last = member.state, sort_key(member)
    found: list[GroupMember] = []
    for state, state_members in members_by_state.items():
        # Only the states that are returned are sorted: sorting thousands of names costs more than reading them.
        if (begins_in and state != begins_in) or len(found) >= count:
            continue
        begins_in = ""
        found += [each for each in sorted(state_members, key=sort_key) if last is None or sort_key(each) > last]
        last = None
    return found[:count]


def sort_key(member: GroupMember) -> tuple[tuple[int | str, ...], str]:
    """Return a sort key by name in natural order: `test 2` before `test 10`."""
    return natural_sort_key(member.name), member.id


def natural_sort_key(name: str) -> tuple[int | str, ...]:
    """Split a name into texts and numbers, so that numbers sort by value."""
    parts = NUMBERS.split(name.lower())
    return tuple(int(part[:18]) if place % 2 else part for place, part in enumerate(parts))


Edge = tuple[str, str]
"""The id of a required task, and the id of the task that depends on it."""


def load_edges(group_id: str, first: str, last: str) -> list[Edge]:
    """Return the dependencies of the tasks of a group between two ids."""
    own = StandaloneTask.objects.filter(group_id=group_id, task_id__gte=first, task_id__lte=last).values("task_id")
    return list(Dependency.objects.filter(task_id__in=own).values_list("required_id", "task_id").iterator())


@dataclass(frozen=True, slots=True)
class DependencyGraph:
    """Dependencies of each task. `order`: each task after its dependencies; tasks in a cycle are at the end."""

    before: Mapping[str, Sequence[str]]
    after: Mapping[str, Sequence[str]]
    order: Sequence[str]


def build_graph(ids: Iterable[str], edges: Iterable[Edge]) -> DependencyGraph:
    """Return the graph of these tasks, without edges to other tasks or from a task to itself. Runs in linear time."""
    before: dict[str, list[str]] = {id: [] for id in ids}
    after: dict[str, list[str]] = {id: [] for id in before}
    for needed, needing in dict.fromkeys(edges):
        if needed != needing and needed in before and needing in before:
            before[needing].append(needed)
            after[needed].append(needing)
    return DependencyGraph(before, after, _topological_order(before, after))


def _topological_order(before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> list[str]:
    left = {id: len(needed) for id, needed in before.items()}
    order = [id for id, count in left.items() if not count]
    for id in order:  # the loop appends to the list
        for other in after[id]:
            left[other] -= 1
            if not left[other]:
                order.append(other)
    seen = set(order)
    return [*order, *(id for id in before if id not in seen)]


def graph_levels(graph: DependencyGraph) -> dict[str, int]:
    """Return the length of the longest chain of dependencies before each task."""
    levels: dict[str, int] = {}
    for id in graph.order:
        levels[id] = max((levels.get(needed, -1) for needed in graph.before[id]), default=-1) + 1
    return levels


def drop_implied_edges(graph: DependencyGraph) -> list[Edge]:
    """Return the edges of the graph without those that other edges imply (transitive reduction)."""
    bit = {id: 1 << place for place, id in enumerate(graph.order)}
    beyond: dict[str, int] = {}
    edges: list[Edge] = []
    for id in graph.order:
        implied = 0
        for needed in graph.before[id]:
            implied |= beyond.get(needed, 0)
        edges += [(needed, id) for needed in graph.before[id] if not implied & bit[needed]]
        beyond[id] = implied
        for needed in graph.before[id]:
            beyond[id] |= bit[needed]
    return edges


@dataclass(frozen=True, slots=True)
class LongestChain:
    """Tasks of the chain in order, with their total time and their time in queues (`waited`), in milliseconds."""

    ids: tuple[str, ...] = ()
    total_ms: int = 0
    waited: int = 0

    @property
    def edges(self) -> set[tuple[str, str]]:
        return set(zip(self.ids, self.ids[1:], strict=False))


def longest_chain(members: Iterable[GroupMember], graph: DependencyGraph, now: int) -> LongestChain:
    """Return the longest chain, in one pass over the graph.

    A task counts from its first scheduling to its end. A task that was not scheduled counts 0.
    """
    known = {member.id: member for member in members}
    spent = {id: _time_spent(member, now) for id, member in known.items()}
    best: dict[str, int] = {}
    came_from: dict[str, str] = {}
    for id in graph.order:
        longest = max(graph.before[id], key=lambda needed: (best.get(needed, 0), needed), default="")
        best[id] = spent[id] + best.get(longest, 0)
        if best.get(longest, 0):
            came_from[id] = longest
    if not any(best.values()):
        return LongestChain()
    last = max(best, key=lambda id: (best[id], id))
    ids = _walk_back(last, came_from)
    return LongestChain(ids, best[last], sum(known[id].waited(now) for id in ids))


def _walk_back(last: str, came_from: dict[str, str]) -> tuple[str, ...]:
    # Unscheduled tasks at the end of the chain, and tasks in a cycle, are left out.
    ids, seen = [last], {last}
    while (needed := came_from.get(ids[-1])) and needed not in seen:
        ids.append(needed)
        seen.add(needed)
    return tuple(reversed(ids))


def _time_spent(member: GroupMember, now: int) -> int:
    if member.began_at is None:
        return 0
    return max((now if member.ended_at is None else member.ended_at) - member.began_at, 0)


MAX_LENGTH = 80
WORDS_END = re.compile(r"[^\w]+")
OTHERS = "…"
"""Key of the remaining tasks if there are still too many patterns."""


def name_pattern(member: GroupMember) -> str:
    """Return the name with numbers replaced: `test 3` and `test 17` become `test #`."""
    return NUMBERS.sub("#", member.name)[:MAX_LENGTH]


def first_word(member: GroupMember) -> str:
    """Return the first word of the name pattern."""
    return WORDS_END.split(name_pattern(member), maxsplit=1)[0] or name_pattern(member)


PATTERN_FUNCTIONS: tuple[Callable[[GroupMember], str], ...] = (name_pattern, first_word)


def matches_pattern(member: GroupMember, kind: str) -> bool:
    """Return True if the task belongs to a pattern."""
    return any(way(member) == kind for way in PATTERN_FUNCTIONS)


def group_by_pattern(members: Iterable[GroupMember], most: int) -> dict[str, list[GroupMember]]:
    """Group members by pattern, into at most `most` groups."""
    members = list(members)
    for way in PATTERN_FUNCTIONS:
        found: dict[str, list[GroupMember]] = {}
        for member in members:
            found.setdefault(way(member), []).append(member)
        if len(found) <= most:
            return found
    ranked = sorted(found.items(), key=lambda each: -len(each[1]))
    rest = [member for _, some in ranked[most - 1 :] for member in some]
    return dict(ranked[: most - 1]) | {OTHERS: rest}


MAX_DETAILED = 5_000
"""Tasks of a list of groups that are counted by state. Larger groups show only their number of resolved tasks."""


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """Number of tasks of a group, of resolved tasks, and, if counted, of tasks by state."""

    total: int = 0
    resolved: int = 0
    states: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_resolved(self) -> bool:
        return self.resolved == self.total

    @property
    def failed(self) -> int:
        return sum(self.states.get(state, 0) for state in ENDED_BADLY)

    @property
    def share(self) -> int:
        """Return the percentage of resolved tasks, rounded down, so that 100 means all."""
        return 100 * self.resolved // self.total if self.total else 0

    @property
    def parts(self) -> list[tuple[str, int]]:
        """Return the states that occur with their counts, failures first."""
        return [(state, self.states[state]) for state in URGENCY if self.states.get(state)]


def group_progress(group_id: str) -> GroupProgress:
    """Return the progress of one group, with counts by state."""
    states = _count_states([group_id]).get(group_id, {})
    resolved = sum(count for state, count in states.items() if state in ("COMPLETED", *ENDED_BADLY))
    return GroupProgress(sum(states.values()), resolved, states)


def groups_progress(group_ids: Iterable[str]) -> dict[str, GroupProgress]:
    """Return the progress of several groups. Only small groups have counts by state, which keeps the list fast."""
    own = StandaloneTask.objects.filter(group_id__in=list(group_ids)).order_by().values_list("group_id")
    counted = own.annotate(total=Count("pk"))
    totals = dict(counted)
    unresolved = dict(counted.filter(ever_resolved=False))
    states = _count_states(_small_groups(totals))
    return {id: GroupProgress(total, total - unresolved.get(id, 0), states.get(id, {})) for id, total in totals.items()}


def _small_groups(totals: Mapping[str, int]) -> list[str]:
    """Return the smallest groups whose tasks together are at most MAX_DETAILED."""
    chosen, left = [], MAX_DETAILED
    for id, total in sorted(totals.items(), key=lambda each: each[1]):
        left -= total
        if left < 0:
            break
        chosen.append(id)
    return chosen


def _count_states(group_ids: Iterable[str]) -> dict[str, dict[str, int]]:
    own = StandaloneTask.objects.filter(group_id__in=list(group_ids)).order_by()
    found: dict[str, dict[str, int]] = {}
    for id, status, count in own.values_list("group_id", "task__status").annotate(count=Count("pk")):
        found.setdefault(id, {})[status] = count
    # An active task is either pending or in progress. Its attempt says which.
    leased = own.filter(Q(task__status="ACTIVE", task__attempts__status="LEASED")).values_list("group_id")
    with_workers = dict(leased.annotate(count=Count("pk")))
    for id, states in found.items():
        active, out = states.pop("ACTIVE", 0), with_workers.get(id, 0)
        states |= {"PENDING": active - out, "LEASED": out}
    return found


MAX_ROWS = 300


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One task, or several similar tasks. `kind`: name pattern of the similar tasks."""

    name: str
    members: Sequence[GroupMember]
    segments: Sequence[TimelineSegment]
    is_critical: bool
    kind: str = ""


def group_span(members: Collection[GroupMember], now: int) -> TimeScale:
    """Return the span from the first scheduled attempt to the last end, or to now while a scheduled task is open."""
    started = [each.began_at for each in members if each.began_at is not None]
    ends = [now if each.ended_at is None else each.ended_at for each in members if each.began_at is not None]
    begin = min(started, default=now)
    return TimeScale(begin, max([*ends, begin + 1]))


def timeline_rows(
    members: Sequence[GroupMember], critical: Collection[str], scale: TimeScale, now: int
) -> list[TimelineRow]:
    """Return the rows in the order in which tasks were first scheduled. More than MAX_ROWS tasks are grouped."""
    if len(members) <= MAX_ROWS:
        return [
            TimelineRow(each.name, (each,), tuple(_member_segments(each, scale, now)), each.id in critical)
            for each in sorted(members, key=_start_order)
        ]
    patterns = group_by_pattern(members, MAX_ROWS)
    ordered = sorted(patterns.items(), key=lambda each: min(map(_start_order, each[1])))
    return [_merged_row(kind, some, critical, scale, now) for kind, some in ordered]


def order_members(members: Sequence[GroupMember]) -> list[GroupMember]:
    """Sort tasks by the time at which they were first scheduled."""
    return sorted(members, key=_start_order)


def _start_order(member: GroupMember) -> tuple[bool, int, int, str]:
    # Tasks without an attempt come last, oldest first.
    return member.began_at is None, member.began_at or 0, member.created_at, member.id


def _merged_row(
    kind: str, some: Sequence[GroupMember], critical: Collection[str], scale: TimeScale, now: int
) -> TimelineRow:
    started = [each for each in some if each.began_at is not None]
    segments = []
    if started:
        own = group_span(started, now)
        state = "failed" if any(each.ended_badly for each in some) else "completed"
        state = "leased" if any(each.ended_at is None for each in started) else state
        if scale.overlaps(own.begin, own.end):
            title = f"{len(started):,}, {format_duration(own.end - own.begin)}"
            segments = [TimelineSegment("work many", state, *scale.extent(own.begin, own.end), title)]
    is_critical = any(each.id in critical for each in some)
    return TimelineRow(kind, tuple(some), tuple(segments), is_critical, "" if kind == OTHERS else kind)


def _member_segments(member: GroupMember, scale: TimeScale, now: int) -> Iterator[TimelineSegment]:
    for one, other in pairwise(member.attempts):
        begin, end = one.ended_at or 0, other.scheduled_at
        if end > begin and scale.overlaps(begin, end):
            yield TimelineSegment(
                GAP, "", *scale.extent(begin, end), f"{one.number}–{other.number}, {format_duration(end - begin)}"
            )
    for each in member.attempts:
        end = now if each.ended_at is None else each.ended_at
        started = end if each.started_at is None else each.started_at
        if started > each.scheduled_at and scale.overlaps(each.scheduled_at, started):
            yield TimelineSegment(
                WAIT,
                each.status,
                *scale.extent(each.scheduled_at, started),
                format_duration(started - each.scheduled_at),
            )
        if each.started_at is not None and scale.overlaps(started, end):
            yield TimelineSegment(
                WORK,
                each.status,
                *scale.extent(started, end),
                f"{each.status.lower()}, {format_duration(end - started)}",
            )


MAX_NODES = 300
TALL_COLUMN = 14
"""Boxes in a column above which all boxes have the small height."""


def draw_group(members: Sequence[GroupMember], graph: DependencyGraph, chain: LongestChain, now: int) -> Diagram:
    """Draw the tasks of a group. More than MAX_NODES tasks are grouped by name pattern, which is then the reference."""
    if len(members) <= MAX_NODES:
        boxes = [_task_box(each, each.id in chain.ids, now) for each in members]
        return _place_boxes(boxes, graph, chain.edges, is_grouped=False)
    return _draw_by_pattern(members, graph, chain)


def _task_box(member: GroupMember, is_critical: bool, now: int) -> DiagramNode:
    last = member.last
    ran = (last.ran(now) or last.waited(now)) if last else 0
    mark = StepMark(member.state, duration_ms=ran, attempts=len(member.attempts), worker=last.worker if last else "")
    return DiagramNode(
        member.id, member.name, "", "", "", "leaf", caption=member.name, mark=mark, is_critical=is_critical
    )


def _draw_by_pattern(members: Sequence[GroupMember], graph: DependencyGraph, chain: LongestChain) -> Diagram:
    """Draw one box per name pattern. Patterns may depend on each other in a cycle; their average level orders them."""
    patterns, levels = group_by_pattern(members, MAX_NODES), graph_levels(graph)
    kind_of = {member.id: kind for kind, some in patterns.items() for member in some}
    depth = {kind: sum(levels[each.id] for each in some) / len(some) for kind, some in patterns.items()}
    between = {(kind_of[needed], kind_of[id]) for id in graph.order for needed in graph.before[id]}
    edges = sorted((a, b) for a, b in between if (depth[a], a) < (depth[b], b))
    boxes = [_pattern_box(kind, some, chain) for kind, some in patterns.items()]
    marked = {(kind_of[a], kind_of[b]) for a, b in chain.edges}
    return _place_boxes(boxes, build_graph(patterns, edges), marked, is_grouped=True)


def _pattern_box(kind: str, some: Sequence[GroupMember], chain: LongestChain) -> DiagramNode:
    counts = Counter(member.state for member in some)
    ranked = sorted(counts, key=lambda state: URGENCY.index(state) if state in URGENCY else len(URGENCY))
    return DiagramNode(
        kind,
        kind,
        "",
        "",
        "",
        "many",
        caption=kind,
        mark=StepMark(ranked[0]),
        counts={state: counts[state] for state in ranked},
        is_critical=not {member.id for member in some}.isdisjoint(chain.ids),
        selects=kind != OTHERS,
    )


def _place_boxes(boxes: list[DiagramNode], graph: DependencyGraph, marked: set[Edge], *, is_grouped: bool) -> Diagram:
    """Place the boxes and draw the lines. An edge that others imply is drawn only if it is marked."""
    levels = graph_levels(graph)
    tallest = max(Counter(levels.values()).values(), default=0)
    height = LOW_BOX_HEIGHT if tallest > TALL_COLUMN else BOX_HEIGHT
    boxes.sort(key=lambda box: (levels[box.ref], natural_sort_key(box.caption), box.ref))
    edges = [*drop_implied_edges(graph), *sorted(edge for edge in marked if edge[0] in graph.before.get(edge[1], ()))]
    drawn = draw_layered({box.ref: levels[box.ref] for box in boxes}, dict.fromkeys(edges), height, frozenset(marked))
    for box in boxes:
        (box.x, box.y), box.height = drawn.positions[box.ref], height
    shorter = drop_shared_parts((box.caption for box in boxes), min((box.title_width for box in boxes), default=0))
    for box in boxes:
        box.short_caption = shorter.get(box.caption, "")
    lines = ((drawn.line, False), (drawn.marked_line, True))
    edges_drawn = [DiagramEdge(path, is_faint=False, is_critical=is_critical) for path, is_critical in lines if path]
    return Diagram(drawn.width, drawn.height, boxes, edges_drawn, [], [], [], is_grouped=is_grouped)
