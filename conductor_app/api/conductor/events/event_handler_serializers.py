"""Parsing and documents of event handlers (EventHandler, api §3.12)."""

from collections.abc import Sequence
from typing import Any

from ....core.document.checks import read_handler
from ....core.errors import Invalid, ValidationError, ValidationFailed
from ....engine.definitions.script_syntax import check_handler
from ....models import EventHandler, Webhook

Document = dict[str, Any]


def parse_new_handlers(body: Any) -> list[Document]:
    """Return one handler, or the list that the JavaScript client sends.

    Raises:
        Invalid: when the body is neither
        ValidationFailed: when a handler is invalid.
    """
    documents = body if isinstance(body, list) else [body]
    if not documents or not all(isinstance(each, dict) for each in documents):
        raise Invalid("The request body must be an event handler, or a list of them.")
    path = "addEventHandler.eventHandler"
    return [
        _parse_handler(each, f"{path}[{n}]" if isinstance(body, list) else path) for n, each in enumerate(documents)
    ]


def parse_changed_handler(document: Document) -> Document:
    """Return a handler with a changed document.

    Raises:
        ValidationFailed: when the handler is invalid.
    """
    return _parse_handler(document, "updateEventHandler.eventHandler")


def _parse_handler(document: Document, path: str) -> Document:
    parsed, validation_errors = check_handler(document)
    if validation_errors:
        raise ValidationFailed(
            [ValidationError(f"{path}.{each.path}", each.message, each.value) for each in validation_errors]
        )
    return parsed


def event_handler_document(row: EventHandler, tags: Sequence[Document] = ()) -> Document:
    """Return an EventHandler; `tags` only where it has some, as Orkes's clients read them."""
    document = {**read_handler(row.document)[0], "name": row.name, "event": row.event, "active": row.is_active}
    # A client that sends back what it has read sends tags, which are stored separately.
    document.pop("tags", None)
    return document | ({"tags": list(tags)} if tags else {})


def webhook_document(row: Webhook) -> Document:
    """Return a webhook as a WebhookConfig, without the values of its secrets."""
    audit = {"createdBy": row.created_by, "createTime": row.created_at, "updateTime": row.updated_at}
    return {**row.document, "id": row.id, "name": row.name, "url": f"/api/webhook/{row.id}", **audit}
