"""Views of event handlers and their tags, of events that clients send, and of processed events (api §2, §3.12)."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Count, Prefetch, QuerySet
from django.http import HttpResponse

from ...access.grants import tags_by_name
from ...access.permissions import DELETE, EVENT_HANDLER, READ, UPDATE
from ...access.visibility import visible
from ...core.document.fields import (
    ChoiceOf,
    FieldSpec,
    IntegerOf,
    ListOf,
    NamedTable,
    ObjectOf,
    read_boolean,
    read_mapping,
    read_text,
)
from ...core.errors import Invalid, NotFound, ValidationError, ValidationFailed
from ...core.primitives import JsonValue
from ...core.validation.checks import EVENT_HANDLER as HANDLER_FIELDS
from ...core.validation.checks import WEBHOOK as WEBHOOK_FIELDS
from ...core.validation.checks import read_handler
from ...core.validation.lint_fields import lint_document
from ...definitions.api.tags import WorkflowTags, tag_operations
from ...definitions.validation import check_handler
from ...web.api import permissions as targets
from ...web.api import requests as request_body
from ...web.api.documents import TAG, TAGS, fields_of_type
from ...web.api.operations import ApiOperation, ArrayOf, EmptyOk, Json, add_findings
from ...web.api.permissions import ADMINISTRATORS_ONLY, ALLOW_ALL, RequiresDefinitionAccess, requires
from ...web.api.view import ConductorRequest, ConductorView
from ..commands.handlers import create_handlers, delete_handler, update_handler
from ..commands.intake import receive_event
from ..models import MATCHED, EventAction, EventDelivery, EventHandler, HandlerEvaluation, Webhook
from ..queries import visible_deliveries, visible_results

can_save_handlers = RequiresDefinitionAccess(EVENT_HANDLER, targets.definitions_in_body(EVENT_HANDLER))
can_view_handler = requires(READ, EVENT_HANDLER, targets.named_in_address(EVENT_HANDLER, "name"))
can_update_handler = requires(UPDATE, EVENT_HANDLER, targets.named_in_address(EVENT_HANDLER, "name"))
can_delete_handler = requires(DELETE, EVENT_HANDLER, targets.named_in_address(EVENT_HANDLER, "event"))
EVENT_HANDLER_DOCUMENT = NamedTable("EventHandler", *HANDLER_FIELDS, TAGS)
WEBHOOK = NamedTable(
    "WebhookConfig",
    *WEBHOOK_FIELDS,
    FieldSpec("url", read_text),
    *fields_of_type(IntegerOf(64), "createTime", "updateTime"),
)
EVENT_EXECUTION = NamedTable(
    "ExtendedEventExecution",
    *fields_of_type(read_text, "id", "messageId", "name", "event", "action", "statusDescription"),
    FieldSpec("status", ChoiceOf("IN_PROGRESS", "COMPLETED", "FAILED", "SKIPPED")),
    FieldSpec("created", IntegerOf(64)),
    *fields_of_type(read_mapping, "output", "fullMessagePayload"),
)
EVENT_MESSAGE = NamedTable(
    "EventMessage",
    *fields_of_type(read_text, "id", "eventTarget"),
    FieldSpec("createdAt", IntegerOf(64)),
    FieldSpec("eventType", ChoiceOf("WEBHOOK", "MESSAGE")),
    FieldSpec("fullPayload", read_mapping),
    FieldSpec("status", ChoiceOf("RECEIVED", "HANDLED", "REJECTED")),
    FieldSpec("eventExecutions", ListOf(ObjectOf(EVENT_EXECUTION))),
)
HANDLED_EVENT = NamedTable(
    "HandledEventResponse",
    *fields_of_type(read_text, "name", "event"),
    FieldSpec("active", read_boolean),
    *fields_of_type(IntegerOf(), "numberOfMessages", "numberOfActions"),
)
HANDLED_EVENT_PAGE = NamedTable(
    "SearchResultHandledEventResponse",
    FieldSpec("totalHits", IntegerOf(64)),
    FieldSpec("results", ListOf(ObjectOf(HANDLED_EVENT))),
)
Document = dict[str, Any]
MAX_ROWS = 100
"""Newest rows of a list that are shown."""


class EventHandlers(ConductorView):
    """GET, POST, PUT /api/event: list all handlers, create some, or update one."""

    @ApiOperation("List the readable event handlers", ALLOW_ALL, reply=ArrayOf(EVENT_HANDLER_DOCUMENT))
    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = EventHandler.objects.order_by("name")
        return Json(add_tags(visible(rows)))

    @ApiOperation("Create an event handler", can_save_handlers, body=EVENT_HANDLER_DOCUMENT, reports_findings=True)
    def post(self, request: ConductorRequest) -> HttpResponse:
        handlers = parse_new_handlers(request_body.read_json(request))
        create_handlers(handlers, request.actor.name)
        found = [finding for each in handlers for finding in lint_document(each, EVENT_HANDLER_DOCUMENT)]
        return add_findings(EmptyOk(), found)

    @ApiOperation("Update an event handler", can_save_handlers, body=EVENT_HANDLER_DOCUMENT, reports_findings=True)
    def put(self, request: ConductorRequest) -> HttpResponse:
        handler = parse_changed_handler(request_body.read_object(request))
        update_handler(handler, request.actor.name)
        return add_findings(EmptyOk(), list(lint_document(handler, EVENT_HANDLER_DOCUMENT)))


class EventHandlerOne(ConductorView):
    """GET, DELETE /api/event/{event}: list the handlers of an event, or delete a handler by name.

    The name of an event may contain slashes.
    """

    @ApiOperation(
        "List the readable handlers of an event",
        ALLOW_ALL,
        reply=ArrayOf(EVENT_HANDLER_DOCUMENT),
        query={"activeOnly": bool},
    )
    def get(self, request: ConductorRequest, event: str) -> HttpResponse:
        rows = visible(EventHandler.objects.filter(event=event))
        if request.query.flag("activeOnly", True):
            rows = rows.filter(is_active=True)
        return Json(add_tags(rows.order_by("name")))

    @ApiOperation("Delete an event handler", can_delete_handler)
    def delete(self, request: ConductorRequest, event: str) -> None:
        delete_handler(event, request.actor.name)


class EventHandlerNamed(ConductorView):
    """GET /api/event/handler/{name}: get a handler."""

    @ApiOperation("Get an event handler", can_view_handler, reply=EVENT_HANDLER_DOCUMENT)
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        row = EventHandler.objects.filter(name=name).first()
        if row is None:
            raise NotFound(f"EventHandler with name {name} not found!")
        [document] = add_tags([row])
        return Json(document)


class IncomingEvent(ConductorView):
    """POST /api/event/handleIncomingEvent: receive an event. Field `event` names it; an `id` is processed only once."""

    @ApiOperation("Publish an event to the server", ADMINISTRATORS_ONLY, body=read_mapping)
    def post(self, request: ConductorRequest) -> None:
        payload = request_body.read_object(request)
        event, id = payload.get("event"), payload.get("id") or str(uuid.uuid4())
        if not isinstance(event, str) or not event or not isinstance(id, str):
            raise Invalid(
                "The field 'event' must name the event, such as conductor:orders:paid; 'id' may name it once."
            )
        receive_event(event, id, payload, "api")


class ActiveEventHandlers(ConductorView):
    """GET /api/event/execution: list the active handlers with their numbers of events and actions."""

    @ApiOperation("List the readable active event handlers with their statistics", ALLOW_ALL, reply=HANDLED_EVENT_PAGE)
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(_handlers_with_counts(EventHandler.objects.filter(is_active=True), 0))


class EventHandlerNumbers(ConductorView):
    """GET /api/event/message?from=: list all handlers with their numbers of events and actions.

    `from`: start of the counts, in epoch milliseconds.
    """

    @ApiOperation(
        "List the readable event handlers with their statistics",
        ALLOW_ALL,
        reply=HANDLED_EVENT_PAGE,
        query={"from": int},
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(_handlers_with_counts(EventHandler.objects.all(), request.query.integer("from", 0, 64)))


def _handlers_with_counts(handlers: QuerySet[EventHandler], since: int) -> dict:
    def numbers(rows: QuerySet) -> dict[str, int]:
        return dict(rows.values_list("handler").annotate(number=Count("pk")).order_by())

    messages = numbers(visible(HandlerEvaluation.objects.filter(at__gte=since)))
    actions = numbers(visible(EventAction.objects.filter(created_at__gte=since)))
    return handled_events_document(list(visible(handlers).order_by("name")), messages, actions)


class EventExecutions(ConductorView):
    """GET /api/event/execution/{name}?from=: list recent executions and skipped events of a handler, newest first."""

    @ApiOperation(
        "List the latest executions of an event handler",
        can_view_handler,
        reply=ArrayOf(EVENT_EXECUTION),
        query={"from": int},
    )
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        if not EventHandler.objects.filter(name=name).exists():
            raise NotFound(f"EventHandler with name {name} not found!")
        since = request.query.integer("from", 0, 64)
        done = EventAction.objects.filter(handler=name, created_at__gte=since).order_by("-created_at", "-pk")
        skipped = (
            HandlerEvaluation.objects.filter(handler=name, at__gte=since)
            .exclude(outcome=MATCHED)
            .order_by("-at", "-pk")
        )
        documents = [event_execution_document(row) for row in done.select_related("delivery")[:MAX_ROWS]]
        documents += [skipped_event_document(row) for row in skipped.select_related("delivery")[:MAX_ROWS]]
        return Json(sorted(documents, key=lambda one: -one["created"])[:MAX_ROWS])


class EventMessages(ConductorView):
    """GET /api/event/message/{event}?from=: list the latest events with a name, newest first."""

    @ApiOperation("List the latest readable events", ALLOW_ALL, reply=ArrayOf(EVENT_MESSAGE), query={"from": int})
    def get(self, request: ConductorRequest, event: str) -> HttpResponse:
        since = request.query.integer("from", 0, 64)
        rows = EventDelivery.objects.filter(event=event, received_at__gte=since).order_by("-received_at", "-pk")
        whole = visible_deliveries(rows).prefetch_related(
            Prefetch("verdicts", visible_results(HandlerEvaluation.objects.select_related("delivery"))),
            Prefetch("actions", visible_results(EventAction.objects.select_related("delivery"))),
        )
        return Json([event_message_document(row) for row in whole[:MAX_ROWS]])


class EventTags(ConductorView):
    """GET, PUT, DELETE /api/event/{name}/tags: list, add or remove tags."""

    operations = tag_operations("an event handler", can_view_handler, can_update_handler, removed=ArrayOf(TAG))

    target = EVENT_HANDLER

    get, put, delete = WorkflowTags.get, WorkflowTags.post, WorkflowTags.delete


def parse_new_handlers(body: JsonValue) -> list[Document]:
    """Return one handler, or the list that the JavaScript client sends."""
    documents = body if isinstance(body, list) else [body]
    if not documents or not all(isinstance(each, dict) for each in documents):
        raise Invalid("The request body must be an event handler, or a list of them.")
    path = "addEventHandler.eventHandler"
    return [
        _parse_handler(each, f"{path}[{n}]" if isinstance(body, list) else path) for n, each in enumerate(documents)
    ]


def parse_changed_handler(document: Document) -> Document:
    """Return a handler with a changed document."""
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


def add_tags(handlers: Iterable[EventHandler]) -> list[Document]:
    rows = list(handlers)
    tags = tags_by_name(EVENT_HANDLER, [row.name for row in rows])
    return [event_handler_document(row, tags.get(row.name, ())) for row in rows]


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
