"""Fairness keys of a queue: what waits under each key, and the order in which claims will take the attempts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Any, NamedTuple

from django.db.models import Max, Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...db.statements import fetch
from ...runs.models import Attempt, AttemptQuerySet
from ..shares import SHARES_SQL, cost_of

MAX_COUNTED = 10_000
"""Attempts that are counted before one, and under a key."""
MAX_KEYS = 1_000


class KeyShare(NamedTuple):
    """The due attempts of a key with one priority.

    `waiting`: their number, at most MAX_COUNTED. `weight`: that of the oldest. `place`: that of the next turn.
    """

    priority: int
    key: str
    waiting: int
    weight: float
    place: int
    served_at: int


def key_shares(queue: str, priority: int, now: int) -> list[KeyShare]:
    """Return the first MAX_KEYS keys of a queue and a priority that have attempts which are due at a time."""
    place = {"queue": queue, "priority": priority, "now": now}
    rows = fetch(*SHARES_SQL["list_shares"].bind(**place, limit=MAX_COUNTED, most=MAX_KEYS))
    lowest = min((place for *_, place, _served in rows if place is not None), default=0)
    return [
        KeyShare(priority, key, waiting, weight, lowest if place is None else place, served_at or 0)
        for key, waiting, weight, place, served_at in rows
        if waiting
    ]


def turns(shares: Sequence[KeyShare]) -> Iterator[str]:
    """Yield the key of each waiting attempt in the order of the claims."""
    heap = [(share.place, share.served_at, share.key, share.waiting, cost_of(share.weight)) for share in shares]
    heapify(heap)
    # At the same place, the key that was served longest ago comes first.
    served_at = max((share.served_at for share in shares), default=0)
    while heap:
        place, _served_at, key, waiting, cost = heappop(heap)
        yield key
        served_at += 1
        if waiting > 1:
            heappush(heap, (place + cost, served_at, key, waiting - 1, cost))


def find_priorities(queue: str) -> list[int]:
    """Return the priorities of the pending attempts of a queue that have a fairness key, highest first."""
    keyed = Attempt.objects.pending(queue).exclude(fairness_key="")
    found: list[int] = []
    while True:
        lower = keyed.filter(priority__lt=found[-1]) if found else keyed
        priority = lower.aggregate(highest=Max("priority"))["highest"]
        if priority is None:
            return found
        found.append(priority)


def same_key_ahead(attempt: Attempt) -> Q:
    """Return the condition of the attempts of the same queue, priority and key that are claimed before this one."""
    same = Q(priority=attempt.priority, fairness_key=attempt.fairness_key)
    return same & is_older(attempt.visible_at, attempt.pk)


def is_older(visible_at: int, id: str) -> Q:
    """Return the condition of the attempts that a claim takes before another one of the same priority without a key."""
    return Q(visible_at__lt=visible_at) | Q(visible_at=visible_at, id__lt=id)


def count_same_key_ahead(attempt: Attempt) -> int:
    """Return how many attempts of the same key are claimed before this one, at most MAX_COUNTED."""
    rows = Attempt.objects.pending(attempt.queue).exclude(fairness_key="").filter(same_key_ahead(attempt))
    return rows.order_by()[:MAX_COUNTED].count()


def count_ahead(attempt: Attempt, now: int) -> int:
    """Return how many attempts are claimed before one with a key that is due or will be, at most MAX_COUNTED."""
    now = max(now, attempt.visible_at)
    due = Attempt.objects.pending(attempt.queue).filter(visible_at__lte=now).order_by()
    taken: Counter[str] = Counter()
    own = count_same_key_ahead(attempt)
    for key in turns(key_shares(attempt.queue, attempt.priority, now)):
        if key == attempt.fairness_key and taken[key] == own:
            break
        taken[key] += 1
        if taken.total() >= MAX_COUNTED:
            return MAX_COUNTED
    higher = due.filter(priority__gt=attempt.priority)[:MAX_COUNTED].count()
    return min(higher + taken.total() + _count_plain_ahead(attempt, due, taken), MAX_COUNTED)


def _count_plain_ahead(attempt: Attempt, due: AttemptQuerySet, taken: Counter[str]) -> int:
    """Return how many attempts without a key come before one with a key: those that become the oldest before its turn.

    `taken`: how many attempts of each key come before it.
    """
    same = due.filter(priority=attempt.priority)
    plain = same.filter(is_older(attempt.visible_at, attempt.pk), fairness_key="")[:MAX_COUNTED].count()
    if not plain:
        return 0
    keyed = same.exclude(fairness_key="").order_by("visible_at", "id").values_list("visible_at", "id")
    left = [keyed.filter(fairness_key=key)[count : count + 1].first() for key, count in taken.items()]
    other = keyed.exclude(fairness_key__in=list(taken)).first()
    at, id = min([place for place in (*left, other) if place], default=(attempt.visible_at, attempt.pk))
    return same.filter(is_older(at, id), fairness_key="")[:MAX_COUNTED].count()


def claim_order(queue: str, now: int, count: int) -> list[str]:
    """Return the ids of the first due attempts of a queue in the order of the claims."""
    due = Attempt.objects.pending(queue).filter(visible_at__lte=now)
    rows = list(due.order_by("-priority", "visible_at", "id").values_list("id", "priority", "fairness_key")[:count])
    keyed = {priority: iter(_keyed_order(queue, priority, now, count)) for _id, priority, key in rows if key}
    found: dict[str, None] = {}
    for id, priority, key in rows:
        while key and id not in found and (following := next(keyed[priority], None)) is not None:
            found[following] = None
        found[id] = None
    return list(found)[:count]


def _keyed_order(queue: str, priority: int, now: int, count: int) -> list[str]:
    """Return the ids of the first attempts with a key, by the turns of the keys."""
    keys = list(islice(turns(key_shares(queue, priority, now)), count))
    pending = Attempt.objects.pending(queue).exclude(fairness_key="").filter(priority=priority, visible_at__lte=now)
    first = {
        key: iter(pending.filter(fairness_key=key).order_by("visible_at", "id").values_list("pk", flat=True)[:number])
        for key, number in Counter(keys).items()
    }
    return [id for key in keys if (id := next(first[key], None)) is not None]


@dataclass(frozen=True, slots=True)
class QueueShare:
    """What waits under a key, and the part of the claims in percent that it gets while all keys have due attempts."""

    priority: int
    key: str
    waiting: int
    weight: float
    percent: float

    @property
    def has_more(self) -> bool:
        return self.waiting >= MAX_COUNTED


def list_queue_shares(queue: str, now: int, most: int) -> list[QueueShare]:
    """Return the keys of a queue with due attempts, by priority and then by their number, at most `most`."""
    found: list[QueueShare] = []
    for priority in find_priorities(queue):
        shares = key_shares(queue, priority, now)
        total = sum(share.weight for share in shares)
        found += [
            QueueShare(priority, share.key, share.waiting, share.weight, 100 * share.weight / total)
            for share in sorted(shares, key=lambda share: (-share.waiting, share.key))
        ]
        if len(found) >= most:
            break
    return found[:most]


def describe_same_key(ahead: int, key: str) -> str:
    """Return how many attempts of the same key come first, as a sentence about a task."""
    facts: dict[str, Any] = {"count": f"{ahead:,}" + ("+" if ahead >= MAX_COUNTED else ""), "key": key}
    if not ahead:
        return _("The task is the next one of fairness key `%(key)s`.") % facts
    sentence = ngettext(
        "The task waits behind %(count)s task of the same fairness key `%(key)s`.",
        "The task waits behind %(count)s tasks of the same fairness key `%(key)s`.",
        ahead,
    )
    return sentence % facts
