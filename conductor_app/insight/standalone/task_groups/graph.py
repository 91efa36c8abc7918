"""Dependencies between the tasks of a group, in topological order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ....models import Dependency, StandaloneTask

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
