"""Timeline of a task group: one row per task or per group of similar tasks, in percent of the whole span."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...durations import format_duration
from ...runs.time_scale import TimeScale
from ...runs.timeline import GAP, WAIT, WORK, TimelineSegment
from .members import GroupMember
from .name_patterns import OTHERS, group_by_pattern

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
