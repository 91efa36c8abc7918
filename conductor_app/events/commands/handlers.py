"""Commands on event handlers: create, update, activate, deactivate and delete."""

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError

from ...access import audit
from ...access.authentication import current_user_id
from ...access.grants import require_starts
from ...core.errors import Conflict, NotFound
from ...db.database import transaction
from ...utils import clock
from ..models import EventHandler

Document = dict[str, Any]


def create_handlers(documents: Sequence[Document], by: str, reason: str = "") -> None:
    """Create event handlers, all or none. They act with the permissions of the current actor, their owner.

    Raises:
        Conflict: when a name is taken.
    """
    with transaction.atomic():
        for document in documents:
            _create_handler(document, by, reason)


def _create_handler(document: Document, by: str, reason: str) -> None:
    _require_actions(document)
    name, now = document["name"], clock.now()
    taken = Conflict(f"EventHandler with name {name} already exists!")
    if EventHandler.objects.filter(name=name).exists():
        raise taken
    try:
        with transaction.atomic():
            row = EventHandler(name=name, created_at=now, created_by=by, revision=0, owner_id=current_user_id())
            _save_handler(row, document, by, reason)
    except IntegrityError:
        # A concurrent request created the same row first.
        raise taken from None


def update_handler(document: Document, by: str, reason: str = "") -> None:
    """Replace the document of an event handler."""
    _require_actions(document)
    with transaction.atomic():
        row = EventHandler.objects.select_for_update().filter(name=document["name"]).first()
        if row is None:
            raise NotFound(f"EventHandler with name {document['name']} not found!")
        row.updated_at, row.updated_by, row.owner_id = clock.now(), by, current_user_id()
        _save_handler(row, document, by, reason)


def set_active(name: str, is_active: bool, by: str) -> None:
    """Activate or deactivate an event handler."""
    with transaction.atomic():
        row = EventHandler.objects.select_for_update().filter(name=name).first()
        if row is None:
            raise NotFound(f"EventHandler with name {name} not found!")
        row.updated_at, row.updated_by = clock.now(), by
        _save_handler(row, {**row.document, "active": is_active}, by, "")


def delete_handler(name: str, by: str, reason: str = "") -> None:
    """Delete an event handler. Its past verdicts and actions stay stored."""
    with transaction.atomic():
        if not EventHandler.objects.filter(name=name).delete()[0]:
            raise NotFound(f"EventHandler with name {name} not found!")
        _record_change(name, "delete", by, reason)


def _require_actions(document: Document) -> None:
    """Check that the current actor may start the workflows that the handler starts by name.

    Its other actions, and computed names, are checked when an event arrives.

    Raises:
        Forbidden: when it may not start one of them.
    """
    params = [action.get("start_workflow") for action in document.get("actions") or () if isinstance(action, dict)]
    names = [param.get("name") for param in params if isinstance(param, dict)]
    require_starts(name for name in names if isinstance(name, str) and name and "${" not in name)


def _save_handler(row: EventHandler, document: Document, by: str, reason: str) -> None:
    row.document, row.event = document, document["event"]
    row.is_active, row.revision = bool(document.get("active")), row.revision + 1
    row.save()
    _record_change(row.name, "overwrite" if row.revision > 1 else "create", by, reason)


def _record_change(name: str, action: str, by: str, reason: str) -> None:
    audit.record("event_handler", name, action, by, reason=reason)
