"""Replay of stored events, and previews of what event handlers would do with them. Previews save nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

from django.db import transaction

from ... import clock, randomness
from ...core.errors import Conflict, Invalid, NotFound, PayloadOverLimit
from ...core.events import expand_json_texts, resolve_event_template
from ...core.expressions import quote_value
from ...core.ids import derived_id
from ...core.masking import redact_masked
from ...models import EventDelivery, EventHandler, Webhook, WorkflowDefinition
from ...models.events import MATCHED
from ...store.definitions import max_value_bytes
from .. import audit
from ..delivery import deliver_after_commit
from .event_intake import HandlerVerdict, evaluate_condition, handlers_for, save_verdicts, stored_payloads
from .webhooks import built_in_handlers

SOURCE = "replay"
TRIED = 100
"""Number of newest events on which a handler is tried."""
MAX_TESTED_SIZE = 262_144
SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """An action with its parameters filled in. `trouble`: why it would fail, if that is known in advance."""

    name: str
    params: Any
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class HandlerPreview:
    """The verdict and the actions that a handler would have for an event."""

    verdict: HandlerVerdict
    acts: Sequence[PlannedAction]


@dataclass(frozen=True, slots=True)
class HandlerTrial:
    """Results of a handler on past events, newest first.

    `large`: number of events skipped because of their size. `left`: number of events skipped because time ran out.
    """

    tried: list[tuple[EventDelivery, HandlerPreview]] = field(default_factory=list)
    large: int = 0
    left: int = 0


def preview_handler(handler: EventHandler, payload: Any, workflows: frozenset[str]) -> HandlerPreview:
    """Return the verdict and the actions that the handler would have for a payload.

    The condition reads masked values decrypted; the parameters of the actions show them redacted.

    Raises:
        Busy: when no helper process can evaluate the condition.
    """
    verdict = evaluate_condition(handler, payload)
    return HandlerPreview(
        verdict,
        list(_planned_actions(handler, redact_masked(payload), workflows)) if verdict.outcome == MATCHED else [],
    )


def _planned_actions(handler: EventHandler, payload: Any, workflows: frozenset[str]) -> Iterator[PlannedAction]:
    for action in handler.document.get("actions") or ():
        name = str(action.get("action") or "")
        seen = expand_json_texts(payload) if action.get("expandInlineJSON") is True else payload
        params = payload if action.get("takesPayload") else _resolve_params(action.get(name) or {}, seen)
        started = (action.get(name) or {}).get("name") if action.get("takesPayload") else _workflow_name(params)
        is_missing = name == "start_workflow" and started not in workflows
        yield PlannedAction(name, params, f"There is no workflow {quote_value(started)}." if is_missing else "")


def _resolve_params(written: Any, payload: Any) -> Any:
    try:
        return resolve_event_template(written, payload, max_value_bytes())
    except PayloadOverLimit as found:
        raise Invalid(str(found)) from found


def _workflow_name(params: Any) -> Any:
    return params.get("name") if isinstance(params, dict) else None


def try_on_past_events(document: dict[str, Any]) -> HandlerTrial:
    """Try a handler document, saved or not, on the newest events of its name. Nothing is executed or saved."""
    handler = EventHandler(name=str(document.get("name") or ""), document=document)
    rows = EventDelivery.objects.filter(event=str(document.get("event") or ""))
    newest = rows.order_by("-received_at", "-pk")[:TRIED]
    sizes = list(newest.values_list("pk", "payload_size"))
    small = [pk for pk, size in sizes if size <= MAX_TESTED_SIZE]
    trial, workflows, ends_at = (
        HandlerTrial(large=len(sizes) - len(small)),
        startable_workflow_names(),
        monotonic() + SECONDS,
    )
    payloads = stored_payloads(small)
    for number, row in enumerate(_deliveries_in_order(small)):
        if monotonic() > ends_at:
            return HandlerTrial(trial.tried, trial.large, len(small) - number)
        trial.tried.append((row, preview_handler(handler, payloads.get(row.pk), workflows)))
    return trial


def _deliveries_in_order(ids: Sequence[int]) -> list[EventDelivery]:
    rows = EventDelivery.objects.filter(pk__in=ids).defer("payload").prefetch_related("verdicts").in_bulk()
    return [rows[id] for id in ids if id in rows]


def startable_workflow_names() -> frozenset[str]:
    """Return the names of all workflows."""
    return frozenset(WorkflowDefinition.objects.order_by().values_list("name", flat=True).distinct())


def plan_replay(delivery: EventDelivery) -> list[HandlerPreview]:
    """Preview what each active handler would do with a stored event."""
    workflows, payload = startable_workflow_names(), stored_payloads([delivery.pk])[delivery.pk]
    return [preview_handler(handler, payload, workflows) for handler in current_handlers(delivery, payload)]


def current_handlers(delivery: EventDelivery, payload: Any) -> list[EventHandler]:
    """Return the handlers that an event would have if it arrived now, with those built into its webhook."""
    provider, _, name = delivery.event.partition(":")
    webhook = Webhook.objects.filter(name=name).first() if provider == "webhook" else None
    return [*handlers_for(delivery.event), *(built_in_handlers(webhook, payload) if webhook else ())]


def replay(delivery_id: int, names: Sequence[str], by: str, reason: str) -> EventDelivery:
    """Send a stored event to these handlers again, as a new event. The verdicts of the old event stay stored.

    Raises:
        NotFound: when there is no such event.
        Conflict: when one of the handlers does not handle this event any more.
        Busy: when no helper process can evaluate a condition.
    """
    original = EventDelivery.objects.filter(pk=delivery_id).first()
    if original is None:
        raise NotFound(f"There is no event with the id {delivery_id}.")
    payload = stored_payloads([delivery_id])[delivery_id]
    handlers = {handler.name: handler for handler in current_handlers(original, payload)}
    if missing := [name for name in names if name not in handlers]:
        raise Conflict(f"The event handler {missing[0]} no longer handles {original.event}.")
    # Conditions run before the transaction, because scripts can be slow.
    verdicts = [evaluate_condition(handlers[name], payload) for name in dict.fromkeys(names)]
    with transaction.atomic():
        now = clock.now()
        delivery = EventDelivery.objects.create(
            event=original.event,
            message_id=derived_id(now, randomness.random_hex()),
            source=SOURCE,
            received_at=now,
            payload=payload,
            payload_size=original.payload_size,
            replay_of=original,
        )
        orders = save_verdicts(delivery, verdicts, now)
        facts = {"event": original.event, "handlers": list(names), "replay": delivery.pk}
        audit.record("event", original.pk, "replay", by, reason=reason, facts=facts, at=now)
        transaction.on_commit(partial(deliver_after_commit, tuple(order.pk for order in orders)))
    return delivery
