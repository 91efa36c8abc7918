"""Received events: the list, and the page of one event, which explains why it did or did not start a run."""

import json
import shlex
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from ...access.client_address import server_address
from ...core.errors import Invalid, NotFound
from ...insight.events import event_search
from ...models import EventDelivery, EventHandler
from ..documents import annotate_documents, json_file_response, payload_documents
from ..fragments import fragment_response
from ..object_pages import ObjectPage, get_or_404
from ..pages import Page
from . import event_formatting
from .event_filters import address_without, filter_bar, parse_filter

VIEW_PERMISSION = "conductor.view_event_handler"
MAX_REPLAYS = 20


class EventsPage(Page):
    """List of received events."""

    name, title, template, permission = "events", "Events", "ops/events/list.html", VIEW_PERMISSION

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        query, refused, found = request.GET, "", event_search.EventListPage(())
        try:
            found = event_search.event_page(
                parse_filter(query), query.get("after", "")[:40], query.get("before", "")[:40]
            )
        except Invalid as wrong:
            refused = wrong.message
        first = found.delivered[0].delivery.received_at if found.delivered and not query.get("after") else 0
        context = {"tab": "received", "refused": refused, "bar": filter_bar(query), "is_cut": found.is_cut}
        context |= {
            "rows": [
                (
                    delivered.delivery,
                    event_formatting.source_label(delivered.delivery.source),
                    event_formatting.handler_outcomes(delivered),
                )
                for delivered in found.delivered
            ]
        }
        context |= {
            "searched_count": event_search.SEARCHED_ROWS,
            "newest": address_without(query) if query.get("after") else "",
        }
        context |= {"older": address_without(query, after=found.after) if found.after else ""}
        context |= {"newer": address_without(query, before=found.before) if found.before else ""}
        context |= {
            "news_query": address_without(query, than=str(first))[1:] if first and not query.get("before") else ""
        }
        if not found.delivered:
            context |= {"is_empty": not EventDelivery.objects.exists(), "curl": _sample_command(request)}
        return context

    def urls(self, site: AdminSite) -> list[URLPattern]:
        return [
            *super().urls(site),
            path("events/news/", site.admin_view(self.new_events_fragment), name="events_news"),
        ]

    def new_events_fragment(self, request: HttpRequest) -> HttpResponse:
        """Return the number of events that arrived after the list was loaded."""
        self._require_access(request)
        since, count = request.GET.get("than", ""), 0
        if since.isdecimal() and len(since) <= 15:
            try:
                count = event_search.count_new_events(parse_filter(request.GET), int(since))
            except Invalid:
                count = 0
        context = {"news": count, "most": event_search.MAX_NEW_EVENTS, "query": address_without(request.GET)[1:]}
        return fragment_response(request, "ops/runs/new_runs.html", context)


def _sample_command(request: HttpRequest) -> str:
    """Return a command that sends an event, for a handler that exists if there is one."""
    listened = EventHandler.objects.filter(is_active=True).order_by("name").values_list("event", flat=True).first()
    event = json.dumps({"event": listened or "conductor:orders:paid", "id": "4711", "total": 12}, ensure_ascii=False)
    address = f"{server_address(request)}/api/event/handleIncomingEvent"
    return f"curl -X POST {address} -H 'Content-Type: application/json' \\\n  -d {shlex.quote(event)}"


class EventPage(ObjectPage):
    """Page of one event: its source, its payload, and the result of each handler."""

    name, template, permission = "event", "ops/events/event.html", VIEW_PERMISSION
    route = "events/<int:event_id>/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        row = find_event(
            url_kwargs["event_id"], annotate_documents(EventDelivery.objects.defer("payload"), ("payload",))
        )
        [delivered] = event_search.load_events([row.pk])
        return {
            "title": row.event,
            "row": row,
            "made": event_formatting.handler_outcomes(delivered),
            "again": event_formatting.repeat_note(row.duplicates) if row.duplicates else "",
            "source": event_formatting.source_label(row.source),
            "payload": payload_documents(row, ("payload",))[0],
            "replays": list(row.replays.defer("payload").order_by("-pk")[:MAX_REPLAYS]),
            "tab": "received",
        }

    def urls(self, site: AdminSite) -> list[URLPattern]:
        payload_view = path(f"{self.route}payload/", site.admin_view(self.payload_view), name="event_payload")
        return [payload_view, *super().urls(site)]

    def payload_view(self, request: HttpRequest, event_id: int) -> HttpResponse:
        """Download the payload as JSON."""
        self._require_access(request)
        row = get_or_404(find_event, event_id)
        return json_file_response(row.payload, f"event-{row.pk}")


def find_event(event_id: int, rows: Any = None) -> EventDelivery:
    """Return the event with this id.

    Raises:
        NotFound: when there is no such event.
    """
    rows = EventDelivery.objects.all() if rows is None else rows
    row = rows.filter(pk=event_id).first() if event_id < 2**63 else None
    if row is None:
        raise NotFound(_("No such event. Events are deleted after EVENT_RETENTION_DAYS days."))
    return row


def event_address(event_id: int) -> str:
    """Return the address of an event's page."""
    return reverse("admin:event", args=[event_id])
