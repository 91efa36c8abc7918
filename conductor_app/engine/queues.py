"""Commands on queues."""

from django.db.models import Count

from .. import clock, conf, wakeups
from ..models import Attempt, AuditEntry


def requeue(task_type: str, by: str, reason: str = "") -> int:
    """Tell whoever waits for work of this name that it is there; how much is.

    The rows are the queue, so nothing can be missing in it: what may have been lost is a hint.
    """
    pending = Attempt.objects.of_runs().pending().filter(name=task_type)
    waiting = dict(pending.values_list("queue").annotate(Count("id")))
    AuditEntry.objects.create(
        at=clock.now(), actor=by, action="requeue", object_type="queue", object_id=task_type[:320], reason=reason
    )
    wakeups.announce([queue for queue, count in waiting.items() for _ in range(min(count, conf.most_waiting_polls))])
    return sum(waiting.values())
