"""Webhooks: their definitions are kept with sealed secrets, and what comes in is verified and heard as an event."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction

from .. import chance, clock
from ..access import vault, webhooks
from ..access.webhooks import Expected, Sent
from ..core.errors import Conflict, NotFound, ValidationFailed
from ..core.ids import derived_id
from ..core.language.checks.webhook import read_webhook
from ..models import AuditEntry, EventHandler, Webhook
from ..models.fields import loads
from . import events

Document = dict[str, Any]


def add(document: Document, by: str) -> Webhook:
    """Keep a new webhook. Raises ValidationFailed, and Conflict where its name is taken."""
    read, complaints = read_webhook(document)
    if complaints:
        raise ValidationFailed(complaints)
    now = clock.now()
    row = Webhook(id=derived_id(now, chance.drawn()), created_at=now, created_by=by)
    return _keep(row, read, by, "create")


def replace(id: str, document: Document, by: str) -> Webhook:
    """Change a webhook; a secret that is not given stays as it was. Raises NotFound, ValidationFailed, Conflict."""
    row = find(id)
    read, complaints = read_webhook(document, has_secret=bool(row.sealed))
    if complaints:
        raise ValidationFailed(complaints)
    row.updated_at, row.updated_by = clock.now(), by
    return _keep(row, read, by, "overwrite")


def remove(id: str, by: str) -> None:
    """Forget a webhook: its address is known no more. Raises NotFound."""
    with transaction.atomic():
        if not Webhook.objects.filter(pk=id).delete()[0]:
            raise NotFound(f"No such webhook: {id}")
        _note(id, "delete", by)


def find(id: str) -> Webhook:
    """The webhook with this id; raises NotFound."""
    row = Webhook.objects.filter(pk=id).first()
    if row is None:
        raise NotFound(f"No such webhook: {id}")
    return row


def _keep(row: Webhook, read: Document, by: str, action: str) -> Webhook:
    secret = {"secret": read.pop("secretValue", None), "headers": read.pop("headers", None)}
    kept = _secrets_of(row) if row.sealed else {}
    given = {name: value for name, value in secret.items() if value}
    row.sealed = vault.seal(f"webhook {row.id}", json.dumps({**kept, **given}))
    shown = dict.fromkeys(given.get("headers") or kept.get("headers") or {}, "")
    row.name, row.document = read["name"], {**read, "id": row.id, "headers": shown}
    try:
        with transaction.atomic():
            row.save()
            _note(row.id, action, by)
    except IntegrityError:
        raise Conflict(f"A webhook with the name {row.name} exists already.") from None
    return row


def _note(id: str, action: str, by: str) -> None:
    AuditEntry.objects.create(at=clock.now(), actor=by, action=action, object_type="webhook", object_id=id)


def _secrets_of(row: Webhook) -> dict[str, Any]:
    return json.loads(vault.opened(f"webhook {row.id}", row.sealed))


def receive(id: str, headers: Mapping[str, str], body: bytes) -> None:
    """Verify what came in and hear it as the event `webhook:<name>`. Raises NotFound and Unauthenticated."""
    row = find(id)
    known = _secrets_of(row)
    expected = Expected(row.document, known.get("secret", ""), known.get("headers", {}))
    message_id = webhooks.verify(expected, Sent(headers, body, clock.now()))
    events.receive(
        f"webhook:{row.name}", message_id or str(uuid.uuid4()), _payload(body), "webhook", also=own_handlers(row)
    )


def _payload(body: bytes) -> Any:
    """The body as JSON, else as text; a value that is no object stands under `body`."""
    text = body.decode("utf-8", "replace")
    try:
        value = loads(text) if text else {}
    except (ValueError, RecursionError):
        value = text
    return value if isinstance(value, dict) else {"body": value}


def own_handlers(row: Webhook) -> list[EventHandler]:
    """What the definition itself asks for: workflows that are started with the payload."""
    wanted = dict(row.document.get("workflowsToStart") or {})
    actions = [
        {"action": "start_workflow", "start_workflow": {"name": name, "version": version}, "takesPayload": True}
        for name, version in wanted.items()
    ]
    return [EventHandler(name=f"webhook {row.name}", document={"actions": actions})] if actions else []
