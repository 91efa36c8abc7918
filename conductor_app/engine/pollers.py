"""Who polls what: kept so that domains and pages know, without a write for every poll."""

from .. import clock
from ..models import Poller

EVERY_MS = 1000
"""How often one worker's polls of one queue are written down."""
MOST_REMEMBERED = 10_000

_noted: dict[tuple[str, str, str], int] = {}


def note_poll(task_type: str, domain: str, worker: str) -> None:
    """Keep that the worker has polled, at most once a second."""
    now, who = clock.now(), (task_type, domain, worker)
    if abs(now - _noted.get(who, 0)) < EVERY_MS:
        return
    if len(_noted) > MOST_REMEMBERED:
        _noted.clear()
    _noted[who] = now
    Poller.objects.bulk_create(
        [Poller(task_type=task_type, domain=domain, worker=worker, polled_at=now)],
        update_conflicts=True,
        unique_fields=["task_type", "domain", "worker"],
        update_fields=["polled_at"],
    )
