"""Documents of processed events: EventExecution, EventMessage and HandledEventResponse (api §2, EventClient)."""

from typing import Any

from ....models import EventAction, EventDelivery, EventHandler, HandlerEvaluation
from ....models.events import MATCHED

Document = dict[str, Any]


def event_execution_document(row: EventAction) -> Document:
    """Return one action of a handler for one event."""
    return {
        **_event_fields(row.delivery, row.handler),
        "id": f"{row.delivery.message_id}_{row.position}",
        "created": row.created_at,
        "action": row.action,
        "status": row.status,
        "statusDescription": row.error,
        "output": row.output,
    }


def skipped_event_document(row: HandlerEvaluation) -> Document:
    """Return an event that did not meet a handler's condition."""
    return {
        **_event_fields(row.delivery, row.handler),
        "id": row.delivery.message_id,
        "created": row.at,
        "status": "SKIPPED",
        "statusDescription": row.error or f"The condition was not met: {row.condition}",
        "output": row.seen,
    }


def _event_fields(delivery: EventDelivery, handler: str) -> Document:
    payload = delivery.payload if isinstance(delivery.payload, dict) else {"value": delivery.payload}
    return {"messageId": delivery.message_id, "name": handler, "event": delivery.event, "fullMessagePayload": payload}


def event_message_document(row: EventDelivery) -> Document:
    """Return an event with the result of each handler. Its actions and evaluations are loaded already."""
    verdicts, actions = row.verdicts.all(), row.actions.all()
    skipped = [skipped_event_document(verdict) for verdict in verdicts if verdict.outcome != MATCHED]
    return {
        "id": row.message_id,
        "createdAt": row.received_at,
        "eventTarget": row.event,
        "eventType": "WEBHOOK" if row.source.startswith("webhook") else "MESSAGE",
        "fullPayload": row.payload if isinstance(row.payload, dict) else {"value": row.payload},
        "status": "HANDLED" if actions else "REJECTED" if verdicts else "RECEIVED",
        "eventExecutions": [*map(event_execution_document, actions), *skipped],
    }


def handled_events_document(
    handlers: list[EventHandler], messages: dict[str, int], actions: dict[str, int]
) -> Document:
    """Return the handlers, each with the numbers of events and actions."""
    found = [
        {
            "name": row.name,
            "event": row.event,
            "active": row.is_active,
            "numberOfMessages": messages.get(row.name, 0),
            "numberOfActions": actions.get(row.name, 0),
        }
        for row in handlers
    ]
    return {"totalHits": len(found), "results": found}
