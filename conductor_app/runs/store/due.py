"""Due rows, outgoing messages and the removal of rows.

Queries for due rows, each over an index.

Writes of outbox messages to runs, tasks and other systems.

Delete runs, standalone tasks and expired rows with everything that belongs to them.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ...ai.models import ModelCall
from ...core.snapshot import NEVER
from ...core.states import BULK
from ...db.named_statements import load_statements
from ...db.statements import execute, fetch
from ..models import PUBLISH, Attempt, CachedResult, Message, Run, TaskLog
from .batch import StatementBatch

DUE_ROWS_SQL = load_statements(
    "runs/store/due_rows", never=str(NEVER), open_bulk_states=", ".join(map(repr, sorted(BULK.open)))
)


class DueAttempts(NamedTuple):
    """Attempts of one run, or of one standalone task, with an expired timer."""

    run_id: str
    task_id: str
    attempt_ids: list[str]


def due_attempts(now: int, limit: int) -> list[DueAttempts]:
    """Return open attempts with a due timer, the longest overdue first."""
    rows = fetch(*DUE_ROWS_SQL["due_attempts"].bind(now=now, limit=limit))
    return [
        DueAttempts(run_id, task_id, [id for *_, id in group])
        for (run_id, task_id), group in groupby(sorted(rows), key=lambda row: row[:2])
    ]


def due_standalone_tasks(now: int, limit: int) -> list[str]:
    """Return standalone tasks whose deadline has passed, the longest overdue first."""
    return _due_ids("due_standalone_tasks", now, limit)


def due_runs(now: int, limit: int) -> list[str]:
    """Return open runs with a due timer, the longest overdue first."""
    return _due_ids("due_runs", now, limit)


def due_messages(now: int, limit: int) -> list[int]:
    """Return messages that were not delivered right after their commit."""
    return _due_ids("due_messages", now, limit)


def due_schedules(now: int, limit: int) -> list[int]:
    """Return schedules whose next slot is due, the longest overdue first."""
    return _due_ids("due_schedules", now, limit)


def startable_slots(now: int, limit: int) -> list[str]:
    """Return waiting slots whose run can start now, earliest first."""
    return _due_ids("startable_slots", now, limit)


def _due_ids(statement: str, now: int, limit: int) -> list[Any]:
    return [id for (id,) in fetch(*DUE_ROWS_SQL[statement].bind(now=now, limit=limit))]


SWEEPS = (
    "fire_schedules",
    "start_waiting_slots",
    "expire_leases",
    "pass_deadlines",
    "wake_runs",
    "deliver_messages",
    "group_failures",
    "release_budget_holds",
)
"""The sweeps whose earliest due times are known, in the order of the statement `due_times`."""


def due_times() -> dict[str, int]:
    """Return the earliest due time of each sweep that has rows."""
    [row] = fetch(*DUE_ROWS_SQL["due_times"].bind())
    return {name: moment for name, moment in zip(SWEEPS, row, strict=True) if moment is not None}


def next_due_moment() -> int | None:
    """Return the earliest due time of all sweeps."""
    return min(due_times().values(), default=None)


def due_jobs(now: int, queues: Sequence[str], model_queues: Sequence[str] = ()) -> list[str]:
    """Return which of the jobs "work", "bulk" and "call_models" have something to do.

    `queues`: those of the built-in workers. `model_queues`: those of the built-in workers of AI tasks.
    """
    statement = DUE_ROWS_SQL["due_jobs_and_model_calls" if model_queues else "due_jobs"]
    [row] = fetch(*statement.bind(queues=queues, model_queues=model_queues, now=now))
    return [name for name, is_due in zip(("work", "bulk", "call_models"), row, strict=False) if is_due]


def expired_slots(before: int, limit: int) -> list[str]:
    """Return slots that were handled before a time, oldest first. Waiting slots are kept."""
    rows = fetch(*DUE_ROWS_SQL["expired_slots"].bind(before=before, limit=limit))
    return [id for (id,) in rows]


def postpone_attempts(attempt_ids: list[str], moment: int, now: int) -> None:
    """Set the timers of these attempts to `moment`, unless they are no longer due."""
    execute(*DUE_ROWS_SQL["postpone_attempts"].bind(moment=moment, ids=attempt_ids, now=now))


def claim_to_publish(now: int, held_until: int, count: int) -> list[int]:
    """Claim due messages to other systems until `held_until`, and return their ids. Locked rows are skipped."""
    statement = DUE_ROWS_SQL["claim_to_publish"]
    claimed = fetch(*statement.bind(now=now, held_until=held_until, count=count))
    return sorted(id for (id,) in claimed)


MESSAGES_SQL = load_statements("runs/store/messages", never=str(NEVER))


def send(subject: str, now: int, *, to: str = "", facts: Mapping[str, Any] | None = None) -> Message:
    """Write one message, to be delivered after the commit."""
    return Message.objects.create(to=to, subject=subject, facts=dict(facts or {}), sent_at=now, due_at=now)


def send_all(messages: Sequence[Message]) -> list[Message]:
    """Write several messages."""
    return Message.objects.bulk_create(messages, batch_size=500) if messages else []


def consume(id: int) -> bool:
    """Delete a handled message. Returns False if another process has handled it."""
    return bool(execute(*MESSAGES_SQL["consume_message"].bind(id=id)))


def consume_with(writes: StatementBatch, id: int) -> None:
    """Delete a handled message together with other statements, which fail if another process has handled it."""
    writes.run(*MESSAGES_SQL["consume_message"].bind(id=id), expected=1)


def delete_messages_to(address: str) -> None:
    """Delete the messages to a deleted run or task."""
    Message.objects.filter(to=address).delete()


def update_messages(ids: Iterable[int], **fields: Any) -> None:
    """Change fields of messages, such as `due_at`, `tries` and `error`."""
    Message.objects.filter(pk__in=list(ids)).update(**fields)


def delay_sink(sink: str, now: int, due_at: int) -> None:
    """Delay all due messages to the same sink."""
    Message.objects.filter(subject=PUBLISH, to=sink, due_at__lte=now).update(due_at=due_at)


def retry_undelivered(ids: Iterable[int], now: int) -> None:
    """Make undelivered messages due, with all their tries. They retain the last error."""
    Message.objects.undelivered().filter(pk__in=list(ids)).update(due_at=now, tries=0)


def discard_undelivered(ids: Iterable[int]) -> None:
    """Delete undelivered messages."""
    Message.objects.undelivered().filter(pk__in=list(ids)).delete()


def prune_undelivered(before: int) -> int:
    """Delete undelivered messages that were sent before a time, and return how many. Open runs keep theirs."""
    return execute(*MESSAGES_SQL["prune_undelivered"].bind(before=before))


def delete_run(run_id: str) -> None:
    """Delete a run with its tasks, attempts, logs, calls of models and messages. The caller has locked it."""
    TaskLog.objects.filter(attempt_id__in=Attempt.objects.filter(run_id=run_id).values("id")).delete()
    ModelCall.objects.filter(run_id=run_id).delete()
    delete_messages_to(run_id)
    Run.objects.filter(pk=run_id).delete()


def delete_expired_results(now: int) -> None:
    """Delete the cached results whose lifetime is over."""
    CachedResult.objects.filter(expires_at__lte=now).delete()
