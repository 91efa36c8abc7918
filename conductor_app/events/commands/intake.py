"""Receipt of events: save the event, the verdict of each event handler, and the actions that follow.

The processes that listen to other systems save the state of their connections for the admin pages.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db.models import F, QuerySet, TextField
from django.db.models.functions import Cast

from ...access.encryption import decrypt_masked
from ...core import events
from ...core.data_requests import ScriptEvaluation as ScriptQuestion
from ...core.data_requests import ScriptResult
from ...core.expressions import NeedsQuickJS, ScriptLanguage, evaluate_in_process, evaluator
from ...core.masking import redact_masked
from ...core.primitives import JsonValue
from ...db.database import transaction
from ...db.fields import dumps, loads_encrypted, strip_nul
from ...payloads.commands import payload_size, refuse_large
from ...runs.commands.loaded_data import run_script
from ...runs.commands.messages import deliver_after_commit
from ...runs.models import Message
from ...runs.store.outbox import consume, send, send_all
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
        if message is not None and not consume(message):
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
    return EventHandler.objects.filter(event=event, is_active=True).order_by("name")


def stored_payloads(ids: Iterable[int]) -> dict[int, Any]:
    """Return the payloads of stored events by id. Masked values stay encrypted."""
    rows = EventDelivery.objects.filter(pk__in=list(ids)).annotate(text=Cast("payload", TextField()))
    return {pk: loads_encrypted(text) for pk, text in rows.values_list("pk", "text")}


def evaluate_condition(handler: EventHandler, payload: JsonValue) -> HandlerVerdict:
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


def _run_condition(handler: EventHandler, condition: str, language: str, payload: JsonValue) -> ScriptResult:
    found = evaluator(language) or ScriptLanguage("javascript")
    if isinstance(found, ScriptLanguage):
        if found.language == "javascript":
            with suppress(NeedsQuickJS):
                return ScriptResult(evaluate_in_process(condition, payload))
        inputs, name = dumps(payload) or "null", f"event handler {handler.name}"
        return run_script(ScriptQuestion(found.language, condition, inputs, name, handler.owner_id))
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
    return send_all(orders)


def handle_internal_event(message: Message) -> None:
    """Receive an internal event from the outbox. The stored payload keeps masked values encrypted."""
    facts = message.written
    receive_event(facts["event"], facts["id"], facts["payload"], events.INTERNAL, message=message.pk)


def publish_internal_event(event: str, message_id: str, payload: JsonValue) -> None:
    """Publish an event to this server. It is handled after the surrounding transaction commits."""
    now = clock.now()
    facts = {"event": event, "id": message_id, "payload": payload}
    with transaction.atomic():
        message = send("event", now, facts=facts)
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
