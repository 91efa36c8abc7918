"""Receipt of events, their outbox, and listeners.

Status of the listeners that receive events from other systems, saved by their processes for the admin pages.

Outbox of events for other systems: the built-in workers claim messages, publish them, and report the results.

Receipt of events: save the event, the verdict of each event handler, and the actions that follow.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet, TextField
from django.db.models.functions import Cast

from ...access.secrets import decrypt_masked
from ...alerts.models import AlertFiring
from ...core import events
from ...core.data_requests import ScriptEvaluation as ScriptQuestion
from ...core.data_requests import ScriptResult
from ...core.expressions import NeedsQuickJS, ScriptLanguage, evaluate_in_process, evaluator
from ...core.masking import redact_masked
from ...core.snapshot import NEVER
from ...db.fields import dumps, loads_encrypted, strip_nul
from ...payloads.commands import payload_size, refuse_large
from ...runs.commands.decision import run_script
from ...runs.commands.messages import deliver_after_commit
from ...runs.models import Message
from ...runs.store import due as due_rows
from ...runs.store import due as outbox_messages
from ...settings import conf
from ...utils import clock
from ..models import (
    FAILED,
    MATCHED,
    MAX_NAME_LENGTH,
    NOT_MATCHED,
    EventAction,
    EventDelivery,
    EventHandler,
    EventListener,
    HandlerEvaluation,
)

FORGOTTEN_MS = 86_400_000
FACTS = ("seen_at", "connected_at", "last_message_at", "error", "failed_at")


def record_listeners(listeners: Sequence[EventListener]) -> None:
    """Save the status of each listener, and delete those that were not updated for a day."""
    now = clock.now()
    for each in listeners:
        each.seen_at, each.error = now, strip_nul(each.error)[:2000]
    # New instances: a saved instance carries its primary key, which the upsert must not insert.
    facts = [{name: getattr(each, name) for name in FACTS} for each in listeners]
    rows = [
        EventListener(event=each.event, process=each.process, **values)
        for each, values in zip(listeners, facts, strict=True)
    ]
    EventListener.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["event", "process"], update_fields=list(FACTS)
    )
    EventListener.objects.filter(seen_at__lt=now - FORGOTTEN_MS).delete()


def remove_listeners(process: str, events: Collection[str]) -> None:
    """Delete the status of listeners that a process has stopped."""
    EventListener.objects.filter(process=process, event__in=list(events)).delete()


CLAIM_MS = 120_000
"""The period in which a claimed message belongs to its worker. It exceeds the longest exchange with a sink."""
MAX_RETRY_DELAY_MS = 300_000
MAX_PAUSE_MS = 3_600_000
MAX_TRIES = 600
"""Tries of a message, about two days. After the last one it stays in the table for operators to see."""


def take_due(count: int) -> Sequence[Message]:
    """Claim up to `count` due messages for CLAIM_MS. Returns them, earliest first."""
    now = clock.now()
    with transaction.atomic():
        ids = due_rows.claim_to_publish(now, now + CLAIM_MS, count)
    return list(Message.objects.filter(pk__in=ids).order_by("id"))


def mark_delivered(message: Message, answer: str = "") -> None:
    """Delete a message that the other system has received."""
    outbox_messages.consume(message.pk)
    _log_alert_delivery(message, delivered_at=clock.now(), error="", answer=answer[:2000])


def drop(message: Message, why: str) -> None:
    """Delete a message that is not tried again, and log why."""
    outbox_messages.consume(message.pk)
    _log_alert_delivery(message, tries=message.tries + 1, error=why[:2000])


def mark_failed(message: Message, why: str, pause_ms: int = 0) -> int:
    """Schedule the next try of a message with exponential backoff. Returns its time in milliseconds.

    `pause_ms`: the pause that the other system demands, which applies up to MAX_PAUSE_MS if it is longer.
    All due messages for the same sink are delayed too, because they would fail in the same way.
    """
    now, tries = clock.now(), message.tries + 1
    backoff = min(1000 * 2 ** min(message.tries, 20), MAX_RETRY_DELAY_MS)
    again_at = now + max(backoff, min(pause_ms, MAX_PAUSE_MS))
    due_at = NEVER if tries >= MAX_TRIES else again_at
    outbox_messages.update_messages([message.pk], tries=tries, due_at=due_at, error=why[:2000])
    _log_alert_delivery(message, tries=tries, error=why[:2000])
    outbox_messages.delay_sink(message.to, now, again_at)
    return again_at


def _log_alert_delivery(message: Message, **facts: object) -> None:
    """Save the result of a delivery on the firing of its alert, if the message belongs to one."""
    if firing := message.facts.get("ring"):
        AlertFiring.objects.filter(pk=firing).update(**facts)


def release(messages: Sequence[Message], due_at: int) -> None:
    """Return claimed messages to the outbox without a try. They become due at `due_at`."""
    outbox_messages.update_messages((each.pk for each in messages), due_at=due_at)


PRUNED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class HandlerVerdict:
    """Result of a handler's condition for a payload. `seen`: the values that the condition read."""

    handler: EventHandler
    answer: ScriptResult
    seen: dict[str, Any]

    @property
    def outcome(self) -> str:
        if self.answer.error:
            return FAILED
        return MATCHED if events.is_true(self.answer.value) else NOT_MATCHED


def receive_event(
    event: str,
    message_id: str,
    payload: Any,
    source: str,
    *,
    message: int | None = None,
    extra_handlers: Sequence[EventHandler] = (),
) -> bool:
    """Receive an event. Returns False if the event with this message id was received before.

    `message`: id of the outbox message that carried the event; it is deleted in the same transaction. `extra_handlers`:
    handlers in addition to the stored ones.

    Raises:
        Busy: when no helper process can evaluate a condition.
        PayloadTooLarge: when an event from outside is larger than the input of a workflow may be.
    """
    # The parts of an internal event passed their checks when the run stored them.
    most = conf.workflow_payload_max_bytes
    size = payload_size(payload) if message is not None else refuse_large(payload, most, "The event")
    event, message_id = strip_nul(event)[:MAX_NAME_LENGTH], _bounded_message_id(strip_nul(message_id))
    known = EventDelivery.objects.filter(event=event, message_id=message_id)
    # Conditions run before the transaction, because scripts can be slow, and not at all for a known event.
    verdicts = (
        []
        if known.exists()
        else [evaluate_condition(handler, payload) for handler in (*handlers_for(event), *extra_handlers)]
    )
    with transaction.atomic():
        if message is not None and not outbox_messages.consume(message):
            return False
        now = clock.now()
        facts = {"source": source, "received_at": now, "payload": payload, "payload_size": size}
        delivery, is_new = EventDelivery.objects.get_or_create(event=event, message_id=message_id, defaults=facts)
        if not is_new:
            known.update(duplicates=F("duplicates") + 1)
            return False
        orders = save_verdicts(delivery, verdicts, now)
        transaction.on_commit(partial(deliver_after_commit, tuple(order.pk for order in orders)))
    return True


def _bounded_message_id(message_id: str) -> str:
    """Return the id, or its digest if it is longer than its column."""
    return message_id if len(message_id) <= MAX_NAME_LENGTH else hashlib.sha256(message_id.encode()).hexdigest()


def handlers_for(event: str) -> QuerySet[EventHandler]:
    """Return the active handlers of an event."""
    return EventHandler.objects.filter(event=event, is_active=True).order_by("name")


def stored_payloads(ids: Iterable[int]) -> dict[int, Any]:
    """Return the payloads of stored events by id. Masked values stay encrypted."""
    rows = EventDelivery.objects.filter(pk__in=list(ids)).annotate(text=Cast("payload", TextField()))
    return {pk: loads_encrypted(text) for pk, text in rows.values_list("pk", "text")}


def evaluate_condition(handler: EventHandler, payload: Any) -> HandlerVerdict:
    """Evaluate a handler's condition; without one, every event matches (execution §10.6).

    The condition reads masked values decrypted; the verdict contains them redacted.

    Raises:
        Busy: when no helper process can evaluate the condition.
    """
    condition = str(handler.document.get("condition") or "")
    if not condition.strip():
        return HandlerVerdict(handler, ScriptResult(value=True), {})
    readable, visible = (
        events.expand_json_texts(decrypt_masked(payload)),
        events.expand_json_texts(redact_masked(payload)),
    )
    language = str(handler.document.get("evaluatorType") or "javascript")
    answer = _run_condition(handler, condition, language, readable)
    if readable != visible:
        answer = replace(answer, value=events.is_true(answer.value))
    return HandlerVerdict(handler, answer, events.observed_values(condition, visible, language))


def _run_condition(handler: EventHandler, condition: str, language: str, payload: Any) -> ScriptResult:
    found = evaluator(language) or ScriptLanguage("javascript")
    if isinstance(found, ScriptLanguage):
        if found.language == "javascript":
            with suppress(NeedsQuickJS):
                return ScriptResult(evaluate_in_process(condition, payload))
        inputs = dumps(payload) or "null"
        return run_script(ScriptQuestion(found.language, condition, inputs, f"event handler {handler.name}"))
    return ScriptResult(value=found.evaluate(condition, payload if isinstance(payload, dict) else {}))


def save_verdicts(delivery: EventDelivery, verdicts: Sequence[HandlerVerdict], now: int) -> list[Message]:
    """Save the verdicts and the actions of matching handlers. Returns one message per action, to be delivered."""
    HandlerEvaluation.objects.bulk_create(
        HandlerEvaluation(
            delivery=delivery,
            handler=verdict.handler.name,
            at=now,
            outcome=verdict.outcome,
            condition=str(verdict.handler.document.get("condition") or ""),
            seen=verdict.seen,
            value=verdict.answer.value,
            error=strip_nul(verdict.answer.error)[:2000],
        )
        for verdict in verdicts
    )
    actions = EventAction.objects.bulk_create(
        EventAction(
            delivery=delivery,
            handler=verdict.handler.name,
            position=position,
            action=str(action.get("action") or "")[:64],
            document=action,
            owner_id=verdict.handler.owner_id,
            created_at=now,
        )
        for verdict in verdicts
        if verdict.outcome == MATCHED
        for position, action in enumerate(verdict.handler.document.get("actions") or ())
    )
    orders = [Message(subject="act", facts={"action": each.pk}, sent_at=now, due_at=now) for each in actions]
    return outbox_messages.send_all(orders)


def handle_internal_event(message: Message) -> None:
    """Receive an internal event from the outbox. The stored payload keeps masked values encrypted."""
    facts = message.written
    receive_event(facts["event"], facts["id"], facts["payload"], events.INTERNAL, message=message.pk)


def publish_internal_event(event: str, message_id: str, payload: Any) -> None:
    """Publish an event to this server. It is handled after the surrounding transaction commits."""
    now = clock.now()
    facts = {"event": event, "id": message_id, "payload": payload}
    with transaction.atomic():
        message = outbox_messages.send("event", now, facts=facts)
        transaction.on_commit(partial(deliver_after_commit, (message.pk,)))


def prune_deliveries(before: int, batches: int) -> int:
    """Delete events received before `before` (milliseconds), in at most `batches` batches. Returns how many."""
    old, pruned = EventDelivery.objects.filter(received_at__lt=before).order_by("received_at"), 0
    for _ in range(batches):
        ids = list(old.values_list("pk", flat=True)[:PRUNED_AT_ONCE])
        if not ids:
            break
        EventDelivery.objects.filter(pk__in=ids).delete()
        pruned += len(ids)
    return pruned
