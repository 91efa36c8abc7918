"""Record of the workers that poll each queue, for the selection of domains and the admin pages."""

from ... import clock
from ...models import Poller

EVERY_MS = 1000
"""The minimum interval between two records of a worker's polls of one queue."""
MAX_REMEMBERED = 10_000

_recorded_at: dict[tuple[str, str, str], int] = {}


def record_poll(task_type: str, domain: str, worker: str) -> None:
    """Record a poll of a worker, at most once per EVERY_MS to save writes."""
    now, who = clock.now(), (task_type, domain, worker)
    if abs(now - _recorded_at.get(who, 0)) < EVERY_MS:
        return
    if len(_recorded_at) > MAX_REMEMBERED:
        _recorded_at.clear()
    _recorded_at[who] = now
    Poller.objects.bulk_create(
        [Poller(task_type=task_type, domain=domain, worker=worker, polled_at=now)],
        update_conflicts=True,
        unique_fields=["task_type", "domain", "worker"],
        update_fields=["polled_at"],
    )
