"""Look up queues for waiting polls: the next attempts, and how many of them could be claimed. Takes no locks."""

from collections import Counter
from collections.abc import Collection

from django.db import connection

from ..models.fields import dumps
from ..models.gates import free_capacity
from .claims import (
    IS_CLAIMABLE,
    claimable_params,
    find_candidates,
    load_limit_facts,
)
from .statements import fetch

NO_WORKER = ""
"""The name of a worker that is not drained."""
PENDING = "FROM conductor_attempt a WHERE a.status = 'PENDING' AND NOT (a.queue = '') AND a.queue ="
NEXT_VISIBLE_OF_QUEUES = {
    vendor: (
        "WITH RECURSIVE p(queue, priority) AS ("
        f"SELECT q.queue, (SELECT MAX(a.priority) {PENDING} q.queue) FROM {each} q "
        f"UNION ALL SELECT p.queue, (SELECT MAX(a.priority) {PENDING} p.queue AND a.priority < p.priority) FROM p "
        "WHERE p.priority IS NOT NULL) "
        f"SELECT p.queue, MIN((SELECT MIN(a.visible_at) {PENDING} p.queue AND a.priority = p.priority)) FROM p "
        "WHERE p.priority IS NOT NULL GROUP BY p.queue"
    )
    for vendor, each in {
        # The planner expects ten elements of an array, but a hundred of JSON, whose costs would start the JIT compiler.
        "postgresql": "(SELECT UNNEST(ARRAY(SELECT json_array_elements_text(%s::json))) AS queue)",
        "sqlite": "(SELECT value AS queue FROM json_each(%s))",
    }.items()
}
"""Reads the first attempt of each priority from the index, so that the length of a queue does not matter."""


def find_next_visible(queues: Collection[str]) -> dict[str, int]:
    """Return the time at which the next pending attempt of each queue becomes visible.

    Queues without pending attempts are omitted. Takes one statement.
    """
    return dict(fetch(NEXT_VISIBLE_OF_QUEUES[connection.vendor], [dumps(sorted(queues))]))


def count_claimable(queue: str, now: int, most: int) -> int:
    """Return how many attempts of runs, at most `most`, the gates would let polls claim now."""
    full: dict[str, int] = {}
    while True:
        candidates = find_candidates(queue, NO_WORKER, now, most, list(full))
        found = Counter(candidate.name for candidate in candidates)
        filled = {}
        for limits in {candidate.name: candidate for candidate in candidates}.values():
            free = free_capacity(load_limit_facts(limits, now)) if limits.is_limited else None
            if free is not None and free < found[limits.name]:
                filled[limits.name] = free
        full |= filled
        if not filled or len(candidates) < most:
            claimable = sum(found[name] for name in found if name not in full) + sum(full.values())
            return min(claimable, most)


def count_claimable_standalone(queue: str, now: int, most: int) -> int:
    """Return how many attempts of standalone tasks, at most `most`, the gates would let workers claim now."""
    sql = f"SELECT a.id FROM conductor_attempt a WHERE {IS_CLAIMABLE} AND a.run_id IS NULL LIMIT %s"
    return len(fetch(sql, [*claimable_params(queue, NO_WORKER, now), most]))
