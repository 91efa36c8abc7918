"""Commands on standalone tasks: create, report and renew. `task_actions` has those of operators."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction

from ... import clock, conf
from ...core.errors import Conflict, Invalid
from ...core.standalone import commands, reports
from ...core.standalone.decide import apply_command
from ...core.standalone.snapshot import StandaloneTask
from ...store import dependencies, standalone_tasks
from ...store.statement_batch import StatementBatch
from ...telemetry import metrics
from ..stale_rows import repeat_while_stale
from . import standalone_rows
from .change import change_task, save_decision
from .claims import ClaimedTask


@dataclass(frozen=True)
class NewTask:
    """Parameters of a new task. `definition`: the complete request, to show it and to compare repeated requests."""

    id: str
    group_id: str
    scheduler_id: str
    project_id: str
    queue: str
    priority: int
    retries: int
    deadline_at: int
    expires_at: int
    requires: Sequence[str]
    accepts_failure: bool
    tags: dict[str, str]
    routes: Sequence[str]
    name: str
    definition: dict[str, Any]


def find_task(task_id: str) -> StandaloneTask:
    """Return a task with its attempts, without a lock.

    Raises:
        NotFound: when there is no such task.
    """
    return standalone_tasks.load_task(task_id)


def create_task(new: NewTask) -> StandaloneTask:
    """Create a task. A repeated request returns the existing task.

    Raises:
        Conflict: when a different task has this id, or the group does not accept the task.
        Invalid: when a dependency does not exist, or expires before the deadline.
        Busy: when concurrent requests prevent the creation.
    """
    # If a concurrent request creates the task, the next attempt finds it.
    return repeat_while_stale(partial(_insert_task, new), task=new.id)


@transaction.atomic
def _insert_task(new: NewTask) -> StandaloneTask:
    now = clock.now()
    if standalone_rows.join_group(new.id, new.group_id, new.scheduler_id, new.expires_at):
        return _find_identical(new, now)
    required = _resolve_requirements(new)
    grace_ms = conf.taskcluster_deadline_delay * 1000
    standalone = StandaloneTask(
        id=new.id,
        group_id=new.group_id,
        queue=new.queue,
        deadline_at=new.deadline_at,
        expires_at=new.expires_at,
        created_at=now,
        name=new.name,
        scheduler_id=new.scheduler_id,
        project_id=new.project_id,
        priority=new.priority,
        retries=new.retries,
        retries_left=new.retries,
        wake_at=new.deadline_at + grace_ms,
        grace_ms=grace_ms,
        lease_ms=conf.taskcluster_claim_timeout * 1000,
        accepts_failure=new.accepts_failure,
        tags=new.tags,
        routes=tuple(new.routes),
        waits=not all(is_satisfied for _, is_satisfied in required),
    )
    effects, after = apply_command(standalone, commands.define_task, now)
    writes = StatementBatch()
    standalone_tasks.insert_task(writes, after, new.definition, required)
    save_decision(writes, standalone, effects, after, now, is_new=True)
    return after


def _find_identical(new: NewTask, now: int) -> StandaloneTask:
    before = standalone_tasks.load_for_update(new.id)
    if standalone_tasks.load_definition(new.id) != new.definition or before.priority != new.priority:
        raise Conflict(f"Task {new.id} already exists with another definition.")
    effects, after = apply_command(before, commands.redefine_task, now)
    save_decision(StatementBatch(), before, effects, after, now)
    return after


def _resolve_requirements(new: NewTask) -> list[tuple[str, bool]]:
    """Return the dependencies of a new task, each with True if it is satisfied already.

    Raises:
        Invalid: when a dependency does not exist or expires too early.
    """
    others = [id for id in new.requires if id != new.id]
    found = dependencies.lock_tasks(others)
    if missing := [id for id in others if id not in found]:
        raise Invalid(f"The dependencies {', '.join(missing[:20])} of task {new.id} do not exist.")
    if early := [id for id in others if found[id].expires_at < new.deadline_at]:
        raise Invalid(f"The dependencies {', '.join(early[:20])} expire before the deadline of task {new.id}.")
    # A task that depends on itself waits until a client schedules it.
    return [(id, id in found and found[id].satisfies(new.accepts_failure)) for id in new.requires]


@metrics.REPORT_SECONDS.of
def report_task(task_id: str, number: int, reason: str) -> StandaloneTask:
    """Apply a worker's report to its attempt.

    Raises:
        NotFound: when there is no such task or attempt.
        Conflict: when the attempt is not leased.
    """
    return change_task(task_id, reports.report_attempt(number, reason))


def renew_lease(task_id: str, number: int) -> ClaimedTask:
    """Extend the lease of an attempt.

    Raises:
        NotFound: when there is no such task or attempt.
        Conflict: when the attempt is not leased.
    """
    standalone = change_task(task_id, reports.renew_lease(number))
    standalone_rows.record_queue_use(standalone.queue, clock.now())
    return ClaimedTask(standalone, standalone.attempts[number], standalone_tasks.load_definition(task_id))
