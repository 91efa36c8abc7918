"""The time of a server of the test kit: it runs, and is set forward to the next moment at which something is due.

The time is set forward only when nothing is due, and no worker of the test has a task or could claim one, so that
everything happens in the order in which it would have happened.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import RLock
from time import monotonic, sleep
from typing import Any

from django.db.models import Min

from ..bulk.executor import run_operations_until
from ..bulk.models import BulkOperation
from ..core.snapshot import NEVER
from ..core.states import BULK, RUN
from ..core.step_types.base import queue_name
from ..db.database import transaction
from ..events.workers.publisher import publish_due_events
from ..notifications import WAITERS
from ..processes.sweeps import due_jobs, sweep_once
from ..runs.models import Attempt, Message
from ..runs.store import loading
from ..runs.store.due_rows import due_times
from ..system_tasks.registry import fast_queues, run_built_in_workers, slow_queues
from ..tasks import store
from ..tasks.queries.waiting import earliest_dispatch_ms
from ..utils import clock
from ..utils.background import registered_work

LOOK_SECONDS = 0.002
BULK_MS = 1_000
Document = dict[str, Any]


class MovableClock:
    """The time of this machine, plus the time that was skipped."""

    def __init__(self) -> None:
        self._skipped_ns = 0

    def install(self) -> None:
        """Let the product read this clock."""
        clock._source = self.time_ns

    def time_ns(self) -> int:
        """Return the time in epoch nanoseconds."""
        return time.time_ns() + self._skipped_ns

    def advance_to(self, moment: int) -> None:
        """Set the clock forward to a time in epoch milliseconds. It is never set back."""
        self._skipped_ns += max(moment * 1_000_000 - self.time_ns(), 0)


@dataclass(frozen=True, slots=True)
class ServedTasks:
    """What the workers of the test serve. `workers`: their ids, under which they hold tasks."""

    queues: tuple[str, ...]
    workers: tuple[str, ...]

    @classmethod
    def parse(cls, document: Document) -> "ServedTasks":
        """Return what a request names: pairs of a task type and a domain, and ids."""
        queues = tuple(sorted({queue_name(name, domain or "") for name, domain in document["tasks"]}))
        return cls(queues, tuple(document["workers"]))

    def open_tasks(self) -> list[Document]:
        """Return the tasks that a worker of the test holds or could claim now: at most one per queue, and all held."""
        now = clock.now()
        attempts = Attempt.objects.defer_payloads().select_related("task")
        found = list(attempts.filter(status="LEASED", worker__in=self.workers))
        for queue in self.queues:
            if store.count_claimable(queue, now, 1):
                found += attempts.filter(queue=queue, status="PENDING", visible_at__lte=now)[:1]
        return [
            {"name": each.name, "ref": str(each.task), "run": each.run_id or "", "isHeld": each.status == "LEASED"}
            for each in found
        ]


class TimeControl:
    """Executes due timers and jobs, and skips the time until the next one."""

    def __init__(self) -> None:
        self._clock = MovableClock()
        self._clock.install()
        self._working = RLock()

    def execute_due(self) -> None:
        """Run the sweeps, the built-in workers and the publishers that have something to do now."""
        with self._working:
            sweep_once()
            for job in due_jobs(fast_queues(), slow_queues()):
                JOBS[job]()

    def skip(
        self, served: ServedTasks, ends_at: float, is_reached: Callable[[], bool] | None = None, until: int = NEVER
    ) -> Document:
        """Skip time until a condition holds, or until nothing is left to do before a moment in epoch milliseconds.

        `ends_at`: a time of the monotonic clock.
        """
        while True:
            self.execute_due()
            # With the lock of the database, no worker claims or reports between the checks and the jump of the clock.
            with self._working, transaction.atomic():
                if is_reached is not None and is_reached():
                    return {"state": "reached"}
                found = served.open_tasks()
                if not found and not is_anything_due():
                    if until <= clock.now():
                        return {"state": "reached"}
                    moment = min(next_moment(served), until)
                    if moment == NEVER:
                        return {"state": "idle"}
                    self._clock.advance_to(moment)
                    # Polls that wait would look for tasks that are visible now only at their end.
                    WAITERS.value.wake_all()
                    continue
            if monotonic() > ends_at:
                return {"state": "late", "tasks": found}
            sleep(LOOK_SECONDS)


def _work() -> None:
    run_built_in_workers(queues=fast_queues())
    for publish in (publish_due_events, *(each for work in registered_work() for each in work.publish)):
        publish(lambda: False)


def _work_in_bulk() -> None:
    run_operations_until(clock.now() + BULK_MS, 0, lambda: False)


def _call_models() -> None:
    run_built_in_workers(queues=slow_queues())


JOBS: dict[str, Callable[[], None]] = {"work": _work, "bulk": _work_in_bulk, "call_models": _call_models}


def is_anything_due() -> bool:
    """Return True if a sweep or a job of the server has something to do now."""
    earliest = min(due_times().values(), default=NEVER)
    return earliest <= clock.now() or bool(due_jobs(fast_queues(), slow_queues()))


def next_moment(served: ServedTasks) -> int:
    """Return the next time at which something is due, in epoch milliseconds, or NEVER."""
    now = clock.now()
    open_operations = BulkOperation.objects.filter(state__in=BULK.open)
    later = [
        *due_times().values(),
        _first(Attempt.objects.filter(status="PENDING", visible_at__gt=now), "visible_at"),
        _first(Message.objects.filter(subject="publish"), "due_at"),
        _first(open_operations, "due_at"),
        _first(open_operations, "held_until"),
        *(_free_at(queue, now) for queue in served.queues),
    ]
    return min((moment for moment in later if moment is not None and moment > now), default=NEVER)


def _first(rows: Any, column: str) -> int | None:
    return rows.aggregate(first=Min(column))["first"]


def _free_at(queue: str, now: int) -> int | None:
    """Return when the rate limit of a queue lets its next attempt pass."""
    found = store.find_candidates(queue, store.NO_WORKER, now, 1)
    delays: Iterable[int | None] = (earliest_dispatch_ms(1, store.load_limit_facts(each, now)) for each in found)
    return min((now + delay for delay in delays if delay), default=None)


def has_ended(run_id: str) -> bool:
    return loading.status_of(run_id) in RUN.final


def has_open_task(run_id: str, ref: str) -> bool:
    """Return True if the run has ended, or has an open attempt of the step with this reference."""
    open_attempts = Attempt.objects.filter(run_id=run_id, task__ref=ref, status__in=("PENDING", "LEASED"))
    return open_attempts.exists() or has_ended(run_id)
