"""Writes of a decision outside its own run: started runs, webhook conditions, and messages."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .. import conf
from ..core.child_run import new_child_run
from ..core.effects import AttachChild, AwaitWebhook, Effect, PublishEvent, SendMessage, StartRun
from ..core.events import INTERNAL, is_internal
from ..core.listener_events import STATE, STATUS, TASK
from ..core.masking import mask_encrypt, masked_names
from ..core.snapshot import Run
from ..core.states import SKIPPED
from ..models import Message
from ..models import Run as RunRow
from ..models.fields import dumps
from ..models.outbox import LISTENER, PUBLISH, TASK_LISTENER
from . import rows
from .statement_batch import StatementBatch

RUN_INSERTED = (
    "id", "name", "version", "resolved_definition_id", "status", "reason", "correlation_id", "priority",
    "created_at", "updated_at", "ended_at", "last_retried_at", "wake_at", "revision", "next_seq",
    "has_skips", "parent_id", "parent_attempt_id", "root_id", "depth", "starter_id",
    "failed_attempt_id", "failed_refs", "failed_names", "domains", "limit_key", "is_held", "started_by", "event",
    "schedule", "idempotency_key", "request_id", "watched_as", "watched_until", "inbox",
    "input", "output", "variables", "input_size", "output_size", "variables_size",
    "input_path", "output_path", "debug",
)  # fmt: skip

WEBHOOK_PATHS_SQL = (
    "INSERT INTO conductor_webhookpaths (workflow, digest, paths) VALUES (%s, %s, %s) "
    "ON CONFLICT (workflow, digest) DO NOTHING"
)
WEBHOOK_WAIT_SQL = (
    "INSERT INTO conductor_webhookwait (attempt_id, workflow, version, digest, created_at) VALUES (%s, %s, %s, %s, %s) "
    "ON CONFLICT (attempt_id) DO UPDATE SET version = excluded.version, digest = excluded.digest, "
    "created_at = excluded.created_at"
)

Seal = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class RunOrigin:
    """Facts about the start of a run that its row stores and decisions do not need.

    `masked`: names whose values are masked in its input, besides those of its definition.
    """

    started_by: str
    event: str = ""
    schedule: str = ""
    idempotency_key: str | None = None
    request_id: str | None = None
    masked: frozenset[str] = frozenset()


def insert_run(writes: StatementBatch, run: Run, origin: RunOrigin, now: int) -> None:
    """Insert a new run in the state after its first decision."""
    writes.insert(RunRow, RUN_INSERTED, [_run_columns(writes, run, origin, now, revision=1)])


def _run_columns(writes: StatementBatch, run: Run, origin: RunOrigin, now: int, *, revision: int) -> list[Any]:
    placement, variables = writes.placement, writes.placement.variables(run)
    input, output = placement.of_run(run, "input", origin.masked), placement.of_run(run, "output")
    has_skips = any(run.tasks[key].status == SKIPPED for key in run.touched if key in run.tasks)
    return [
        run.id, run.definition.name, run.definition.version, run.definition.hash, run.status,
        rows.strip_nul(run.reason), rows.strip_nul(run.correlation_id)[:512], run.priority, run.created_at, now,
        run.ended_at, run.last_retried_at, run.wake_at, revision, run.next_seq,
        has_skips, run.parent_id, run.parent_attempt_id, run.root_id, run.depth, run.starter_id,
        run.failed_attempt_id, dumps(list(run.failed_refs)), dumps(list(run.failed_names)), dumps(dict(run.domains)),
        run.limit_key, run.is_held, rows.strip_nul(origin.started_by)[:255], rows.strip_nul(origin.event)[:255],
        origin.schedule, origin.idempotency_key, origin.request_id, run.watched_as, run.watched_until, run.inbox,
        input.text, output.text, variables, input.size, output.size, len(variables),
        input.path, output.path, rows.debug_text(run),
    ]  # fmt: skip


def insert_started_runs(writes: StatementBatch, effects: Iterable[Effect], run: Run, now: int) -> None:
    """Insert the runs that the decision starts and that have not begun."""
    starts = [effect for effect in effects if isinstance(effect, StartRun) and not effect.has_begun]
    if starts:
        for freed in filter(None, (effect.releases_key_of for effect in starts)):
            writes.run("UPDATE conductor_run SET idempotency_key = NULL WHERE id = %s", [freed])
        writes.insert(RunRow, RUN_INSERTED, [_insert_started_run(writes, effect, run, now) for effect in starts])


def _insert_started_run(writes: StatementBatch, effect: StartRun, run: Run, now: int) -> list[Any]:
    return _run_columns(writes, new_child_run(effect, run, now), origin_of_start(effect, run), now, revision=0)


def origin_of_start(effect: StartRun, run: Run) -> RunOrigin:
    """Return the origin of a run that this run starts."""
    # A failure workflow gets the whole input of this run, so the values that this definition masks stay masked.
    masked = masked_names(run.definition) if effect.is_failure_workflow else frozenset()
    return RunOrigin("engine", idempotency_key=effect.idempotency_key or None, masked=masked)


def attach_children(writes: StatementBatch, effects: Iterable[Effect], run: Run) -> None:
    """Make this run the parent of existing runs, so that they report their end to it."""
    for effect in effects:
        if isinstance(effect, AttachChild):
            sql = "UPDATE conductor_run SET parent_id = %s, parent_attempt_id = %s WHERE id = %s"
            writes.run(sql, [run.id, effect.attempt_id, effect.run_id])


def insert_webhook_waits(writes: StatementBatch, effects: Iterable[Effect], run: Run, now: int) -> None:
    """Write the webhook conditions of attempts. A rerun replaces the condition under the same id."""
    name, version = run.definition.name, run.definition.version
    for effect in effects:
        if isinstance(effect, AwaitWebhook):
            paths = dumps(list(effect.paths)) or ""
            writes.run(WEBHOOK_PATHS_SQL, [name, hashlib.sha256(paths.encode()).hexdigest(), paths])
            writes.run(WEBHOOK_WAIT_SQL, [effect.attempt_id, name, version, effect.digest, now])


def insert_messages(writes: StatementBatch, effects: Iterable[Effect], run: Run, now: int) -> list[Message]:
    """Insert the messages of these effects, including those that make started runs begin."""
    senders = [effect for effect in effects if isinstance(effect, StartRun | AttachChild | SendMessage | PublishEvent)]
    rows = (_message_row(effect, run, now, writes.placement.seal) for effect in senders)
    messages = [row for row in rows if row is not None]
    writes.insert_messages(messages)
    return messages


def _message_row(
    effect: StartRun | AttachChild | SendMessage | PublishEvent, run: Run, now: int, seal: Seal
) -> Message | None:
    if isinstance(effect, PublishEvent):
        return event_message(effect, run, now, seal)
    if isinstance(effect, AttachChild):
        # The child may have ended already: the handler of this message checks that.
        effect = SendMessage(run.id, "child_ended", {"attempt": effect.attempt_id, "child": effect.run_id})
    if isinstance(effect, SendMessage):
        # `asked` is an operator's command for the parent. Which names the parent's definition masks is unknown here.
        facts = mask_encrypt(effect.facts, frozenset(("asked",)), seal)
        return Message(to=effect.to, subject=effect.subject, facts=facts, sent_at=now, due_at=now)
    if effect.has_begun:
        return None
    facts = {"about": run.id} if effect.is_failure_workflow else {}
    facts |= {"is_limited": True} if effect.definition.document.get("rateLimitConfig") else {}
    return Message(to=effect.id, subject="begin", facts=facts, sent_at=now, due_at=now)


def event_message(effect: PublishEvent, run: Run, now: int, seal: Seal) -> Message | None:
    """Return the message of a published event; None if neither the definition nor the settings name a sink."""
    sink = effect.sink
    if effect.about == STATUS and not sink and not (sink := LISTENER if conf.workflow_status_listener_url else ""):
        return None
    if effect.about == TASK:
        sink = TASK_LISTENER
    if effect.about == STATE and conf.state_change_sink != INTERNAL:
        sink = conf.state_change_sink
    if is_internal(sink):
        payload = mask_encrypt(effect.payload, masked_names(run.definition), seal)
        facts = {"event": sink, "id": effect.id, "payload": payload}
        return Message(subject="event", facts=facts, sent_at=now, due_at=now)
    facts = {"sink": sink, "id": effect.id, "payload": effect.payload}
    return Message(to=sink[:64], subject=PUBLISH, facts=facts, sent_at=now, due_at=now)
