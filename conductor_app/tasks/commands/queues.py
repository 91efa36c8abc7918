"""Commands on queues, on their pending attempts, and on workers."""

from typing import Any

from django.db.models import Count, Max, Min

from ... import notifications
from ...access import audit
from ...core import commands, decide
from ...core.decide import Report
from ...core.errors import Conflict, Invalid, NotFound
from ...core.snapshot import NEVER
from ...core.step_types.base import queue_name, task_type_of
from ...db.database import transaction
from ...db.fields import strip_nul
from ...runs.commands.change import Audit, RunCommand, change_run
from ...runs.models import Attempt
from ...settings import conf
from ...utils import clock
from .. import store
from ..models import Poller, QueueHold, WorkerHold
from .reports import report_task

MAX_RELEASED = 500
HIGHEST = 99
"""The highest priority that clients can set."""


def notify_queue(task_type: str, by: str) -> int:
    """Send the notifications for all pending attempts of a task type again. Returns the number of attempts.

    Only notifications can be lost: the queue itself consists of the rows.
    """
    pending = Attempt.objects.of_runs().pending().filter(name=task_type)
    waiting = dict(pending.values_list("queue").annotate(Count("id")))
    _record_change(task_type, by, "requeue", "")
    notifications.announce(
        [queue for queue, count in waiting.items() for _ in range(min(count, conf.max_waiting_polls))]
    )
    return sum(waiting.values())


def pause_queue(queue: str, by: str, reason: str = "", until_at: int | None = None) -> None:
    """Pause a queue until `until_at` (milliseconds) or until it is resumed. Leased attempts continue.

    Raises:
        Invalid: when the name is invalid, or `until_at` is in the past.
    """
    queue, now = _check_queue_name(queue), clock.now()
    if until_at is not None and until_at <= now:
        raise Invalid("The end of the pause is in the past.")
    with transaction.atomic():
        facts = {"until_at": until_at or NEVER, "held_at": now, "by": by[:255], "reason": reason}
        QueueHold.objects.update_or_create(queue=queue, defaults=facts)
        _record_change(queue, by, "pause", reason, {"until_at": until_at} if until_at else {})


def resume_queue(queue: str, by: str, reason: str = "") -> None:
    """Resume a paused queue.

    Raises:
        Conflict: when the queue is not paused.
    """
    queue = _check_queue_name(queue)
    with transaction.atomic():
        if not QueueHold.objects.filter(queue=queue).delete()[0]:
            raise Conflict(f"Queue {queue} is not paused.")
        _record_change(queue, by, "resume", reason)
        waiting = min(Attempt.objects.pending(queue).count(), conf.max_waiting_polls)
        transaction.on_commit(lambda: notifications.announce([queue] * max(waiting, 1)))


def drain_worker(worker: str, by: str, reason: str = "") -> None:
    """Drain a worker: it finishes its leased attempts and cannot claim others."""
    worker, now = strip_nul(worker)[:255], clock.now()
    if not worker:
        raise Invalid("The name of the worker is empty.")
    with transaction.atomic():
        WorkerHold.objects.update_or_create(worker=worker, defaults={"held_at": now, "by": by[:255], "reason": reason})
        _record_change(worker, by, "drain", reason, kind="worker")


def undrain_worker(worker: str, by: str, reason: str = "") -> None:
    """Let a drained worker claim attempts again.

    Raises:
        Conflict: when the worker is not drained.
    """
    with transaction.atomic():
        if not WorkerHold.objects.filter(worker=worker).delete()[0]:
            raise Conflict(f"Worker {worker} is not drained.")
        _record_change(worker, by, "resume", reason, kind="worker")


def release_worker_tasks(worker: str, by: str, reason: str = "") -> int:
    """Return up to MAX_RELEASED attempts of a worker to their queues, as if it had released them. Returns how many."""
    held = Attempt.objects.of_runs().filter(status="LEASED", worker=worker).exclude(queue="").order_by("seq")
    release = Report("IN_PROGRESS", worker=worker, merges=True, is_kept=False)
    found = list(held.values_list("run_id", "id")[:MAX_RELEASED]) if worker else []
    count = sum(report_task(run_id, id, release, by) for run_id, id in found)
    _record_change(worker, by, "release", reason, {"count": count}, kind="worker")
    return count


def remove_worker(worker: str, by: str, reason: str = "") -> None:
    """Remove a stopped worker from the list. It is listed again when it polls.

    Raises:
        NotFound: when the worker is not listed.
    """
    with transaction.atomic():
        if not Poller.objects.filter(worker=worker).delete()[0]:
            raise NotFound(f"There is no worker {worker}.")
        WorkerHold.objects.filter(worker=worker).delete()
        _record_change(worker, by, "remove", reason, kind="worker")


def prioritize(attempt_id: str, priority: int, by: str, reason: str = "") -> None:
    """Change the priority of a pending attempt.

    Raises:
        Invalid: when the priority is out of range.
        Conflict: when the attempt is not pending in a queue.
    """
    if not 0 <= priority <= HIGHEST:
        raise Invalid(f"The priority must be 0 to {HIGHEST} (got {priority}).")
    _change_position(_find_pending_attempt(attempt_id), "change priority", by, reason, priority=priority)


def move_to_front(attempt_id: str, by: str, reason: str = "") -> None:
    """Move a pending attempt to the front of its queue, and skip its delay. It does not wait for the turn of its key.

    Raises:
        Conflict: when the attempt is not pending in a queue, or is held.
    """
    attempt = _find_movable_attempt(attempt_id)
    others = Attempt.objects.pending(attempt.queue).exclude(pk=attempt_id)
    highest = max(others.aggregate(highest=Max("priority"))["highest"] or 0, attempt.priority)
    first = others.filter(priority=highest).aggregate(first=Min("visible_at"))["first"]
    visible_at = min(clock.now(), attempt.visible_at, *([first - 1] if first is not None else []))
    with transaction.atomic():
        _change_position(attempt, "move to front", by, reason, priority=highest, visible_at=visible_at)
        if attempt.fairness_key:
            store.remove_fairness_key(attempt_id)


def skip_delay(attempt_id: str, by: str, reason: str = "") -> None:
    """Skip the delay of a pending attempt. Workers claim it in queue order.

    Raises:
        Conflict: when the attempt is not pending in a queue, is held, or has no delay left.
    """
    attempt, now = _find_movable_attempt(attempt_id), clock.now()
    if attempt.visible_at <= now:
        raise Conflict(f"Task {attempt.task} is not delayed: workers can claim it already.")
    _change_position(attempt, "skip delay", by, reason, visible_at=now)


def take_from_worker(attempt_id: str, by: str, reason: str = "") -> None:
    """Take an attempt from its worker and return it to its queue, as if the worker had released it.

    Raises:
        Conflict: when no worker holds the attempt.
    """
    attempt = _find_attempt(attempt_id)
    facts = {"task": str(attempt.task), "worker": attempt.worker}
    command = commands.release_lease(attempt_id)
    change_run(
        RunCommand(
            attempt.run_id or "", command, by, reason, audit=Audit("release from worker", facts), attempts=[attempt_id]
        )
    )


def move_to_domain(attempt_id: str, domain: str, by: str, reason: str = "") -> None:
    """Move a pending attempt to the queue of another domain, or of none. Its retries use the original domain.

    Raises:
        Conflict: when the attempt is not pending in a queue.
    """
    attempt, domain = _find_pending_attempt(attempt_id), strip_nul(domain.strip())[:128]
    queue = queue_name(task_type_of(attempt.queue, attempt.domain), domain)
    _change_position(attempt, "move to domain", by, reason, queue=queue, domain=domain)


def delay_until(attempt_id: str, until_at: int, by: str, reason: str = "") -> None:
    """Delay a pending attempt until `until_at` (milliseconds).

    Raises:
        Invalid: when `until_at` is in the past.
        Conflict: when the attempt is not pending in a queue, or is held.
    """
    if until_at <= clock.now():
        raise Invalid("The end of the delay is in the past.")
    _change_position(_find_movable_attempt(attempt_id), "hold", by, reason, visible_at=until_at)


def cancel_attempt(attempt_id: str, by: str, reason: str = "") -> None:
    """Cancel a pending attempt. It is not retried, and its run continues as after any canceled task.

    Raises:
        Conflict: when the attempt is not pending in a queue.
    """
    attempt, report = (
        _find_pending_attempt(attempt_id),
        Report("CANCELED", reason=strip_nul(reason) or f"Canceled by {by}."),
    )
    command, facts = decide.apply_report(attempt_id, report), {"task": str(attempt.task)}
    change_run(
        RunCommand(attempt.run_id or "", command, by, reason, audit=Audit("cancel task", facts), attempts=[attempt_id])
    )


def _change_position(attempt: Attempt, action: str, by: str, reason: str, **facts: Any) -> None:
    audited = {"task": str(attempt.task), **facts}
    command = commands.requeue_attempt(attempt.pk, facts)
    change_run(
        RunCommand(attempt.run_id or "", command, by, reason, audit=Audit(action, audited), attempts=[attempt.pk])
    )


def _find_attempt(attempt_id: str) -> Attempt:
    attempt = Attempt.objects.of_runs().defer_payloads().select_related("task").filter(pk=attempt_id).first()
    if attempt is None:
        raise NotFound(f"There is no task {attempt_id}.")
    return attempt


def _find_pending_attempt(attempt_id: str) -> Attempt:
    attempt = _find_attempt(attempt_id)
    if attempt.status != "PENDING" or not attempt.queue:
        raise Conflict(f"Task {attempt_id} is {attempt.status}: it does not wait in a queue.")
    return attempt


def _find_movable_attempt(attempt_id: str) -> Attempt:
    """Return a pending attempt whose time may be changed: a new time would end a stop or the hold of its run."""
    attempt = _find_pending_attempt(attempt_id)
    if attempt.visible_at >= NEVER:
        raise Conflict(
            f"Task {attempt.task} is stopped at a breakpoint, or its run waits for a limit of parallel runs. Continue "
            "it in the debugger, or raise the limit."
        )
    return attempt


def _check_queue_name(queue: str) -> str:
    name = strip_nul(queue.strip())
    if not name or len(name) > 640:
        raise Invalid("The name of a queue must have 1 to 640 characters.")
    return name


def _record_change(
    name: str, by: str, action: str, reason: str, facts: dict[str, Any] | None = None, kind: str = "queue"
) -> None:
    audit.record(kind, name, action, by, reason=reason, facts=facts)
