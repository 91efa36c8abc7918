"""Views of processed events for the clients of Orkes, and of the tags of event handlers."""

from django.db.models import Count, QuerySet
from django.http import HttpResponse

from ....access.access_types import EVENT_HANDLER
from ....core.errors import NotFound
from ....models import EventAction, EventDelivery, EventHandler, HandlerEvaluation
from ....models.events import MATCHED
from ..api_operation import EMPTY_REPLY, ApiOperation, ArrayOf
from ..definitions.tag_serializers import TAG
from ..definitions.tag_views import WorkflowTags
from ..openapi import tables as shapes
from ..permission_rules import ADMINISTRATORS_ONLY
from ..replies import Json
from ..view import ConductorRequest, ConductorView
from .event_log_serializers import (
    event_execution_document,
    event_message_document,
    handled_events_document,
    skipped_event_document,
)

MAX_ROWS = 100
"""Newest rows of a list that are shown."""


class ActiveEventHandlers(ConductorView):
    """GET /api/event/execution: list the active handlers with their numbers of events and actions."""

    operations = {
        "get": ApiOperation(
            "List active event handlers with their statistics",
            permission=ADMINISTRATORS_ONLY,
            reply=shapes.HANDLED_EVENT_PAGE,
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(_handlers_with_counts(EventHandler.objects.filter(is_active=True), 0))


class EventHandlerNumbers(ConductorView):
    """GET /api/event/message?from=: list all handlers with their numbers of events and actions.

    `from`: start of the counts, in epoch milliseconds.
    """

    operations = {
        "get": ApiOperation(
            "List all event handlers with their statistics",
            permission=ADMINISTRATORS_ONLY,
            reply=shapes.HANDLED_EVENT_PAGE,
            query={"from": int},
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(_handlers_with_counts(EventHandler.objects.all(), request.query.integer("from", 0, 64)))


def _handlers_with_counts(handlers: QuerySet[EventHandler], since: int) -> dict:
    def numbers(rows: QuerySet) -> dict[str, int]:
        return dict(rows.values_list("handler").annotate(number=Count("pk")).order_by())

    messages = numbers(HandlerEvaluation.objects.filter(at__gte=since))
    actions = numbers(EventAction.objects.filter(created_at__gte=since))
    return handled_events_document(list(handlers.order_by("name")), messages, actions)


class EventExecutions(ConductorView):
    """GET /api/event/execution/{name}?from=: list recent executions and skipped events of a handler, newest first."""

    operations = {
        "get": ApiOperation(
            "List the latest executions of an event handler",
            permission=ADMINISTRATORS_ONLY,
            reply=ArrayOf(shapes.EVENT_EXECUTION),
            query={"from": int},
        ),
    }

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

    operations = {
        "get": ApiOperation(
            "List the latest events",
            permission=ADMINISTRATORS_ONLY,
            reply=ArrayOf(shapes.EVENT_MESSAGE),
            query={"from": int},
        ),
    }

    def get(self, request: ConductorRequest, event: str) -> HttpResponse:
        since = request.query.integer("from", 0, 64)
        rows = EventDelivery.objects.filter(event=event, received_at__gte=since).order_by("-received_at", "-pk")
        whole = rows.prefetch_related("verdicts__delivery", "actions__delivery")
        return Json([event_message_document(row) for row in whole[:MAX_ROWS]])


class EventTags(ConductorView):
    """GET, PUT, DELETE /api/event/{name}/tags: list, add or remove tags."""

    operations = {
        "get": ApiOperation("List the tags of an event handler", permission=ADMINISTRATORS_ONLY, reply=ArrayOf(TAG)),
        "put": ApiOperation(
            "Set the tags of an event handler", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY, body=ArrayOf(TAG)
        ),
        "delete": ApiOperation(
            "Remove tags from an event handler", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY, body=ArrayOf(TAG)
        ),
    }

    target = EVENT_HANDLER

    get, put, delete = WorkflowTags.get, WorkflowTags.post, WorkflowTags.delete
