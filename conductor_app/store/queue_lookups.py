"""Look up queues for waiting polls: the next attempts, and how many of them could be claimed. Takes no locks."""

from collections import Counter
from collections.abc import Collection

from ..models.fields import dumps
from ..models.gates import free_capacity
from .claims import CLAIMS_SQL, find_candidates, load_limit_facts
from .statements import fetch

NO_WORKER = ""
"""The name of a worker that is not drained."""


def find_next_visible(queues: Collection[str]) -> dict[str, int]:
    """Return the time at which the next pending attempt of each queue becomes visible.

    Queues without pending attempts are omitted. Takes one statement.
    """
    return dict(fetch(*CLAIMS_SQL["find_next_visible"].bind(queues=dumps(sorted(queues)))))


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
    statement = CLAIMS_SQL["find_claimable_standalone"]
    return len(fetch(*statement.bind(queue=queue, worker=NO_WORKER, now=now, count=most)))
