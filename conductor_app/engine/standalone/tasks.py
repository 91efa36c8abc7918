"""Commands on stand-alone tasks: create, report, renew. What steers them stands in acts.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from ... import clock, conf
from ...core.errors import Busy, Conflict, Invalid
from ...core.standalone import commands, reports
from ...core.standalone.decide import apply_command
from ...core.standalone.snapshot import StandaloneTask
from ...store import dependencies, standalone_tasks
from ...store.statement_batch import StaleRow, StatementBatch
from ...telemetry import metrics
from . import rows
from .change import TRIES, change_task, save_decision
from .claims import ClaimedTask


@dataclass(frozen=True)
class NewTask:
    """What a client asks for. `definition`: all that it wrote, as the task is shown later and told from others."""

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
    """The task as it is now, with its attempts; nothing is locked. Raises NotFound."""
    return standalone_tasks.load_task(task_id)


def create_task(new: NewTask) -> StandaloneTask:
    """A new task; the same one asked for again is the one that is there. Raises Conflict, Invalid and Busy."""
    for _ in range(TRIES):
        try:
            with transaction.atomic():
                return _insert_task(new, clock.now())
        except StaleRow:
            # Somebody has just created it: it is there now.
            continue
    raise Busy(task=new.id)


def _insert_task(new: NewTask, now: int) -> StandaloneTask:
    if rows.join_group(new.id, new.group_id, new.scheduler_id, new.expires_at):
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
        raise Conflict(f"Task {new.id} exists already, with another definition.")
    effects, after = apply_command(before, commands.redefine_task, now)
    save_decision(StatementBatch(), before, effects, after, now)
    return after


def _resolve_requirements(new: NewTask) -> list[tuple[str, bool]]:
    """What the task waits for, and whether that is satisfied already; raises Invalid."""
    others = [id for id in new.requires if id != new.id]
    found = dependencies.lock_tasks(others)
    if missing := [id for id in others if id not in found]:
        raise Invalid(f"The dependencies {', '.join(missing[:20])} of task {new.id} do not exist.")
    if early := [id for id in others if found[id].expires_at < new.deadline_at]:
        raise Invalid(f"The dependencies {', '.join(early[:20])} expire before the deadline of task {new.id}.")
    # A task that depends on itself waits until somebody schedules it.
    return [(id, id in found and found[id].satisfies(new.accepts_failure)) for id in new.requires]


@metrics.REPORT_SECONDS.of
def report_task(task_id: str, number: int, reason: str) -> StandaloneTask:
    """A worker says how its attempt ended. Raises NotFound and Conflict."""
    return change_task(task_id, reports.report_attempt(number, reason))


def renew_lease(task_id: str, number: int) -> ClaimedTask:
    """Extend the lease of an attempt. Raises NotFound and Conflict."""
    standalone = change_task(task_id, reports.renew_lease(number))
    rows.record_queue_use(standalone.queue, clock.now())
    return ClaimedTask(standalone, standalone.attempts[number], standalone_tasks.load_definition(task_id))
