"""Commands on standalone tasks: create, claim, report, renew, and the actions of operators and clients.

A change locks the task, applies a command, and saves the task with what follows from its resolution, which is announced
to the dependent tasks, and to the group if it was the last one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ... import notifications
from ...access import audit
from ...core.decide import EVENTS_OF_OUTCOMES
from ...core.errors import Conflict, Invalid, NotFound
from ...core.snapshot import NEVER, Attempt
from ...core.states import LEASED, PENDING
from ...db.database import transaction
from ...db.statements import execute_in_transaction
from ...notifications import LOCAL_CALLER, WaitingClient, WaitSteps, wait_in_thread
from ...runs.commands.messages import deliver_after_commit
from ...runs.models import OVERDUE_TASK, Message
from ...runs.models import Attempt as AttemptRow
from ...runs.store import due_rows, outbox
from ...runs.store.due_rows import handle_each, put_off_timers
from ...runs.store.writing import StatementBatch, repeat_while_stale
from ...settings import conf
from ...tasks import throughput
from ...tasks.commands.claims import LongPoll, begin_poll, releasing_undelivered, retry_releases
from ...tasks.commands.pollers import record_poll, standalone_queue
from ...tasks.throughput import record_claims
from ...telemetry import metrics
from ...telemetry.log_context import log_context
from ...telemetry.metrics import ATTEMPTS_ENDED
from ...utils import clock
from .. import store
from ..core import decisions
from ..core.decisions import Command, apply_command, no_command, satisfy_dependency
from ..core.snapshot import (
    Effect,
    OpenStandaloneAttempt,
    PublishMessage,
    PublishResolution,
    StandaloneTask,
    TransitionStandaloneAttempt,
)
from ..queries import NAMES_OF_PRIORITIES
from ..store import NewPulseMessage
from . import rows
from .rows import PUBLISHERS, group_message, is_quarantined, pulse_message, pulse_messages_of, record_worker

GROUP_RESOLVED = "task-group-resolved"
OUTCOMES = {event: outcome for outcome, event in EVENTS_OF_OUTCOMES.items()}
PAGE = 50
"""Dependent tasks that one delivery updates. The sweep continues with the others, so that no caller waits for all."""
CLAIM_WAIT_SECONDS = 20.0
"""The time that a claim waits for work. Clients time out after 30 s."""
PRIORITIZE = "prioritize"
"""The action that needs a priority."""


def publish_group_resolved(
    writes: StatementBatch, before: StandaloneTask, effects: Iterable[Effect], now: int
) -> list[NewPulseMessage]:
    """Return the message that the group is resolved, if this task was its last one.

    If other tasks are open, a check of the group is enqueued instead, because they may be resolved concurrently.
    """
    if not _resolutions(effects):
        return []
    if before.group_has_unresolved:
        store.insert_check_message(writes, before.group_id, now)
        return []
    return _publish_resolved(writes, before.group_id, now)


def _publish_resolved(writes: StatementBatch, group_id: str, now: int) -> list[NewPulseMessage]:
    store.delete_check_messages(writes, group_id)
    group = store.load_group(group_id)
    return [group_message(group, GROUP_RESOLVED, now)] if group is not None else []


def handle_group_check(message: Message) -> None:
    """Publish that a group is resolved, if it is: its last tasks were resolved concurrently."""
    with transaction.atomic():
        if outbox.consume(message.pk) and store.is_resolved(message.to):
            writes = StatementBatch()
            store.insert_pulse_messages(writes, _publish_resolved(writes, message.to, clock.now()))
            writes.send()


def enqueue_resolution(before: StandaloneTask, effects: Iterable[Effect]) -> None:
    """Enqueue the message to the tasks that depend on a resolved task. It is delivered after the commit."""
    if before.is_awaited and (resolutions := _resolutions(effects)):
        now = clock.now()
        ids = [store.insert_resolved_message(before.id, {"reason": each.reason}, now) for each in resolutions]
        transaction.on_commit(partial(deliver_after_commit, tuple(ids)))


def _resolutions(effects: Iterable[Effect]) -> Sequence[PublishResolution]:
    return [effect for effect in effects if isinstance(effect, PublishResolution)]


def change_task(task_id: str, command: Command, *, required_id: str = "") -> StandaloneTask:
    """Change one task in one transaction, and return the task after the change.

    `required_id`: the resolved dependency that the command is about.

    Raises:
        Conflict: when the state of the task does not allow the command.
        Busy: when other processes keep changing the task.
    """
    change = partial(_decide_and_save, task_id, command, required_id)
    with log_context("change", task_id=task_id):
        return repeat_while_stale(partial(execute_in_transaction, change), task=task_id)


def _decide_and_save(task_id: str, command: Command, required_id: str) -> StandaloneTask:
    now = clock.now()
    before = store.load_for_update(task_id, required_id)
    effects, after = apply_command(before, command, now)
    if effects:
        save_decision(StatementBatch(), before, effects, after, now)
    return after


def save_decision(
    writes: StatementBatch,
    before: StandaloneTask,
    effects: Sequence[Effect],
    after: StandaloneTask,
    now: int,
    is_new: bool = False,
) -> None:
    """Save a decision together with the statements in `writes`. Notifications and messages are sent after the commit.

    `is_new`: `writes` insert the task.
    """
    notices = [
        *pulse_messages_of(before, effects, now),
        *publish_group_resolved(writes, before, effects, now),
    ]
    store.save_task(writes, before, effects, after, notices, now, is_new)
    enqueue_resolution(before, effects)
    transaction.on_commit(partial(_count_decision, before, effects))
    queues = [standalone_queue(after.queue)] if after.attempt is not None and after.attempt.status == PENDING else []
    queues += [PUBLISHERS] if any(notice.due_at <= now for notice in notices) else []
    if queues:
        transaction.on_commit(partial(notifications.announce, queues))


def _count_decision(before: StandaloneTask, effects: Iterable[Effect]) -> None:
    """Count the attempts that a decision scheduled or ended."""
    now, standalone = clock.now(), before
    for effect in effects:
        if isinstance(effect, OpenStandaloneAttempt):
            throughput.record_scheduled(effect.attempt, now)
        elif isinstance(effect, TransitionStandaloneAttempt):
            attempt = standalone.attempts[-1]
            throughput.record_outcome(attempt, effect.event, attempt.worker, now)
            if effect.event in OUTCOMES:
                ATTEMPTS_ENDED.count(store.STANDALONE, OUTCOMES[effect.event])
        standalone = effect.after(standalone)
    throughput.write_if_due()


def wake_task(task_id: str) -> StandaloneTask:
    """Evaluate the rules of a task without a command.

    Raises:
        Busy: when other processes keep changing the task.
    """
    return change_task(task_id, no_command)


def pass_deadlines(limit: int) -> int:
    """Resolve the tasks whose deadline and grace have passed. Returns how many."""
    return handle_each(due_rows.due_standalone_tasks(clock.now(), limit), wake_task, _put_off)


def _put_off(task_id: str, error: str) -> None:
    with transaction.atomic():
        put_off_timers(OVERDUE_TASK, task_id, error, clock.now())


def handle_dependency_resolved(message: Message) -> None:
    """Satisfy the dependency in one page of the tasks that wait for it."""
    completed = message.facts["reason"] == "completed"
    page = store.dependents_of(message.to, completed, PAGE)
    for task_id in page:
        try:
            change_task(task_id, satisfy_dependency(message.to), required_id=message.to)
        except NotFound:
            continue
    if len(page) == PAGE:
        outbox.update_messages([message.pk], due_at=clock.now(), tries=0)
    else:
        outbox.consume(message.pk)


Rendered = TypeVar("Rendered")


class ClaimedTask(NamedTuple):
    """An attempt that a worker has claimed, with its task."""

    standalone: StandaloneTask
    attempt: Attempt
    definition: dict[str, Any]


def claim_tasks(queue: str, group: str, name: str, count: int) -> list[ClaimedTask]:
    """Claim up to `count` attempts for a worker, with a long poll. A quarantined worker receives none."""
    return wait_in_thread(begin_claim(queue, group, name, count))


def begin_claim(
    queue: str, group: str, name: str, count: int, client: WaitingClient = LOCAL_CALLER
) -> WaitSteps[list[ClaimedTask]]:
    """Return the steps of a claim of up to `count` attempts."""
    record_poll(queue, "", f"{group}/{name}")
    record_worker(queue, group, name, clock.now())
    wait_ms = round(CLAIM_WAIT_SECONDS * 1000)
    return _claim_steps(LongPoll(standalone_queue(queue), wait_ms, count, client), queue, group, name)


def _claim_steps(poll: LongPoll, queue: str, group: str, name: str) -> WaitSteps[list[ClaimedTask]]:
    ids: list[str] = []

    def take() -> list[ClaimedTask]:
        claimed = _claim_now(queue, group, name, poll.count)
        ids.extend(each.attempt.id for each in claimed)
        return claimed

    with releasing_undelivered(ids, f"{group}/{name}", _release_attempt):
        return (yield from begin_poll(poll, take))


def render_delivered(render: Callable[[list[ClaimedTask]], Rendered]) -> Callable[[list[ClaimedTask]], Rendered]:
    """Return the function that renders the reply to a claim, and releases the attempts if that raises an exception."""

    def render_or_release(claimed: list[ClaimedTask]) -> Rendered:
        worker = claimed[0].attempt.worker if claimed else ""
        with releasing_undelivered([each.attempt.id for each in claimed], worker, _release_attempt):
            return render(claimed)

    return render_or_release


def _release_attempt(attempt: AttemptRow) -> None:
    """Make a claimed attempt pending again, because its worker does not receive it."""
    change_task(attempt.task_id, decisions.release_lease(attempt.number, attempt.worker))


@metrics.CLAIM_SECONDS.of
def _claim_now(queue: str, group: str, name: str, count: int) -> list[ClaimedTask]:
    retry_releases()
    now = clock.now()
    if not store.is_any_waiting(queue, group, name, now):
        return []
    ids: list[str] = []

    def claim() -> list[ClaimedTask]:
        ids[:] = store.claim_attempts(queue, group, name, now, count)
        return _load_and_publish(ids, now) if ids else []

    with releasing_undelivered(ids, f"{group}/{name}", _release_attempt):
        claimed = execute_in_transaction(claim)
        record_claims(each.attempt for each in claimed)
        return claimed


def claim_one(task_id: str, number: int, group: str, name: str) -> ClaimedTask:
    """Claim one attempt by its number. A repeated claim of the same worker returns the attempt again.

    Raises:
        Conflict: when the worker is quarantined, the deadline has passed, or the attempt is not pending.
    """
    worker, now = f"{group}/{name}", clock.now()
    standalone = store.load_task(task_id)
    record_worker(standalone.queue, group, name, now)
    attempt = decisions.find_attempt(standalone, number)
    if is_quarantined(standalone.queue, group, name, now):
        raise Conflict(f"Worker {worker} is quarantined.")
    if standalone.is_late(now):
        raise Conflict(f"The deadline of task {task_id} has passed.")
    if attempt.status == LEASED and attempt.worker == worker:
        return ClaimedTask(standalone, attempt, store.load_definition(task_id))
    with transaction.atomic():
        if attempt.status != PENDING or not store.claim_attempt(attempt.id, worker, now):
            raise Conflict(f"Run {number} of task {task_id} cannot be claimed: it is not pending.")
        [claimed] = _load_and_publish([attempt.id], now)
    record_claims([claimed.attempt])
    return claimed


def _load_and_publish(ids: Sequence[str], now: int) -> list[ClaimedTask]:
    """Load the claimed attempts in this order, and save their Pulse messages."""
    claimed = [
        ClaimedTask(standalone, standalone.attempts[-1], definition)
        for standalone, definition in store.load_claimed(ids)
    ]
    writes = StatementBatch()
    store.insert_pulse_messages(
        writes,
        [
            pulse_message(each.standalone, "task-running", PublishMessage("running", each.attempt.number), now)
            for each in claimed
        ],
    )
    writes.send()
    if conf.taskcluster_amqp_url:
        transaction.on_commit(partial(notifications.announce, [PUBLISHERS]))
    return claimed


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
    """Return a task with its attempts, without a lock."""
    return store.load_task(task_id)


def create_task(new: NewTask) -> StandaloneTask:
    """Create a task. A repeated request returns the existing task.

    Raises:
        Conflict: when a different task has this id, or the group does not accept the task.
        Invalid: when a dependency does not exist, or expires before the deadline.
        Busy: when concurrent requests prevent the creation.
    """
    # If a concurrent request creates the task, the next attempt finds it.
    return repeat_while_stale(partial(execute_in_transaction, partial(_insert_task, new)), task=new.id)


def _insert_task(new: NewTask) -> StandaloneTask:
    now = clock.now()
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
    effects, after = apply_command(standalone, decisions.define_task, now)
    writes = StatementBatch()
    store.insert_task(writes, after, new.definition, required)
    save_decision(writes, standalone, effects, after, now, is_new=True)
    return after


def _find_identical(new: NewTask, now: int) -> StandaloneTask:
    before = store.load_for_update(new.id)
    if store.load_definition(new.id) != new.definition or before.priority != new.priority:
        raise Conflict(f"Task {new.id} already exists with another definition.")
    effects, after = apply_command(before, decisions.redefine_task, now)
    save_decision(StatementBatch(), before, effects, after, now)
    return after


def _resolve_requirements(new: NewTask) -> list[tuple[str, bool]]:
    """Return the dependencies of a new task, each with True if it is satisfied already."""
    others = [id for id in new.requires if id != new.id]
    found = store.lock_tasks(others)
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
        Conflict: when the attempt is not leased.
    """
    return change_task(task_id, decisions.report_attempt(number, reason))


def renew_lease(task_id: str, number: int) -> ClaimedTask:
    """Extend the lease of an attempt.

    Raises:
        Conflict: when the attempt is not leased.
    """
    standalone = change_task(task_id, decisions.renew_lease(number))
    rows.record_queue_use(standalone.queue, clock.now())
    return ClaimedTask(standalone, standalone.attempts[number], store.load_definition(task_id))


ACTS: Mapping[str, Command] = {
    "schedule": decisions.schedule_task,
    "rerun": decisions.rerun_task,
    "cancel": decisions.cancel_task,
}


def parse_command(verb: str, priority: int = 0) -> Command:
    """Return the command of an action."""
    if verb == PRIORITIZE and priority in NAMES_OF_PRIORITIES:
        return decisions.prioritize(priority)
    if verb not in ACTS:
        raise Invalid(f"Missing or unknown action {verb[:64]!r}. Use one of: {', '.join((*ACTS, PRIORITIZE))}.")
    return ACTS[verb]


def apply_action(
    verb: str, task_id: str, by: str, reason: str = "", priority: int = 0, asked_at: int = NEVER
) -> StandaloneTask:
    """Apply an action to a task, and return the task after it.

    `asked_at`: the time of the request. The action is skipped if the task was rerun since.

    Raises:
        Conflict: when the state of the task does not allow the action.
    """
    command = decisions.unless_rerun_since(asked_at, parse_command(verb, priority))
    with transaction.atomic():
        after = change_task(task_id, command)
        facts = {"priority": NAMES_OF_PRIORITIES[priority]} if priority else {}
        audit.record("task", task_id, verb, by, reason=reason, facts=facts)
    return after
