"""Views of event handlers, and of events that clients send."""

import uuid
from collections.abc import Iterable

from django.http import HttpResponse

from ....access.access_types import EVENT_HANDLER
from ....access.permissions import filter_readable
from ....core.document.checks.values import read_mapping
from ....core.document.lint import lint_document
from ....core.errors import Invalid, NotFound
from ....engine.definitions.tags import tags_by_name
from ....engine.events import event_handlers, event_intake
from ....models import EventHandler
from .. import request_body
from ..api_operation import EMPTY_REPLY, ApiOperation, ArrayOf
from ..findings import add_findings
from ..openapi import tables as shapes
from ..permission_rules import ADMINISTRATORS_ONLY, ALLOW_ALL
from ..permissions import can_delete_handler, can_save_handlers, can_view_handler
from ..replies import EmptyOk, Json
from ..view import ConductorRequest, ConductorView
from .event_handler_serializers import Document, event_handler_document, parse_changed_handler, parse_new_handlers


def add_tags(handlers: Iterable[EventHandler]) -> list[Document]:
    """Return EventHandlers with the tags of each."""
    rows = list(handlers)
    tags = tags_by_name(EVENT_HANDLER, [row.name for row in rows])
    return [event_handler_document(row, tags.get(row.name, ())) for row in rows]


class EventHandlers(ConductorView):
    """GET, POST, PUT /api/event: list all handlers, create some, or update one."""

    operations = {
        "get": ApiOperation(
            "List the readable event handlers", permission=ALLOW_ALL, reply=ArrayOf(shapes.EVENT_HANDLER)
        ),
        "post": ApiOperation(
            "Create an event handler",
            permission=can_save_handlers,
            reply=EMPTY_REPLY,
            body=shapes.EVENT_HANDLER,
            reports_findings=True,
        ),
        "put": ApiOperation(
            "Update an event handler",
            permission=can_save_handlers,
            reply=EMPTY_REPLY,
            body=shapes.EVENT_HANDLER,
            reports_findings=True,
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = EventHandler.objects.order_by("name")
        return Json(add_tags(filter_readable(request.actor, rows, EVENT_HANDLER)))

    def post(self, request: ConductorRequest) -> HttpResponse:
        handlers = parse_new_handlers(request_body.read_json(request))
        event_handlers.create_handlers(handlers, request.actor.name)
        found = [finding for each in handlers for finding in lint_document(each, shapes.EVENT_HANDLER)]
        return add_findings(EmptyOk(), found)

    def put(self, request: ConductorRequest) -> HttpResponse:
        handler = parse_changed_handler(request_body.read_object(request))
        event_handlers.update_handler(handler, request.actor.name)
        return add_findings(EmptyOk(), list(lint_document(handler, shapes.EVENT_HANDLER)))


class EventHandlerOne(ConductorView):
    """GET, DELETE /api/event/{event}: list the handlers of an event, or delete a handler by name.

    The name of an event may contain slashes.
    """

    operations = {
        "get": ApiOperation(
            "List the readable handlers of an event",
            permission=ALLOW_ALL,
            reply=ArrayOf(shapes.EVENT_HANDLER),
            query={"activeOnly": bool},
        ),
        "delete": ApiOperation("Delete an event handler", permission=can_delete_handler, reply=EMPTY_REPLY),
    }

    def get(self, request: ConductorRequest, event: str) -> HttpResponse:
        rows = filter_readable(request.actor, EventHandler.objects.filter(event=event), EVENT_HANDLER)
        if request.query.flag("activeOnly", True):
            rows = rows.filter(is_active=True)
        return Json(add_tags(rows.order_by("name")))

    def delete(self, request: ConductorRequest, event: str) -> HttpResponse:
        event_handlers.delete_handler(event, request.actor.name)
        return EmptyOk()


class EventHandlerNamed(ConductorView):
    """GET /api/event/handler/{name}: get a handler."""

    operations = {
        "get": ApiOperation("Get an event handler", permission=can_view_handler, reply=shapes.EVENT_HANDLER),
    }

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        row = EventHandler.objects.filter(name=name).first()
        if row is None:
            raise NotFound(f"EventHandler with name {name} not found!")
        return Json(*add_tags([row]))


class IncomingEvent(ConductorView):
    """POST /api/event/handleIncomingEvent: receive an event. Field `event` names it; an `id` is processed only once."""

    operations = {
        "post": ApiOperation(
            "Publish an event to the server", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY, body=read_mapping
        ),
    }

    def post(self, request: ConductorRequest) -> HttpResponse:
        payload = request_body.read_object(request)
        event, id = payload.get("event"), payload.get("id") or str(uuid.uuid4())
        if not isinstance(event, str) or not event or not isinstance(id, str):
            raise Invalid(
                "The field 'event' must name the event, such as conductor:orders:paid; 'id' may name it once."
            )
        event_intake.receive_event(event, id, payload, "api")
        return EmptyOk()
