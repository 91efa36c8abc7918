"""The longest chain of dependent tasks: the chain that took the most time in total."""

from collections.abc import Iterable
from dataclasses import dataclass

from .graph import DependencyGraph
from .members import GroupMember


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
