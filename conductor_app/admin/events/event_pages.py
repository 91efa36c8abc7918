"""Events that came in: the list, and the page of one, which says why it did, or did not, start something."""

import json
import shlex
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from ...core.errors import Invalid, NotFound
from ...insight import events
from ...models import EventDelivery, EventHandler
from ..documents import annotate_documents, json_file_response, payload_documents
from ..fragments import fragment_response
from ..object_pages import ObjectPage, get_or_404
from ..pages import Page
from . import formatting
from .filters import address_without, filter_bar, parse_filter

VIEW = "conductor.view_event_handler"
MOST_REPLAYS = 20


class EventsPage(Page):
    """Why did this event, or did it not, start something?"""

    name, title, template, permission = "events", "Events", "ops/events/list.html", VIEW

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        given, refused, found = request.GET, "", events.EventListPage(())
        try:
            found = events.event_page(parse_filter(given), given.get("after", "")[:40], given.get("before", "")[:40])
        except Invalid as wrong:
            refused = wrong.message
        first = found.told[0].delivery.received_at if found.told and not given.get("after") else 0
        shown = {"tab": "received", "refused": refused, "bar": filter_bar(given), "is_cut": found.is_cut}
        shown |= {
            "rows": [
                (told.delivery, formatting.source_label(told.delivery.source), formatting.handler_outcomes(told))
                for told in found.told
            ]
        }
        shown |= {"looked_at": events.LOOKED_AT, "newest": address_without(given) if given.get("after") else ""}
        shown |= {"older": address_without(given, after=found.after) if found.after else ""}
        shown |= {"newer": address_without(given, before=found.before) if found.before else ""}
        shown |= {
            "news_query": address_without(given, than=str(first))[1:] if first and not given.get("before") else ""
        }
        if not found.told:
            shown |= {"is_empty": not EventDelivery.objects.exists(), "curl": _curl(request)}
        return shown

    def urls(self, site: AdminSite) -> list[URLPattern]:
        return [*super().urls(site), path("events/news/", site.admin_view(self.news), name="events_news")]

    def news(self, request: HttpRequest) -> HttpResponse:
        """How many have come in since the list was read."""
        self._admit(request)
        since, count = request.GET.get("than", ""), 0
        if since.isdecimal() and len(since) <= 15:
            try:
                count = events.count_new_events(parse_filter(request.GET), int(since))
            except Invalid:
                count = 0
        shown = {"news": count, "most": events.MOST_NEWS, "query": address_without(request.GET)[1:]}
        return fragment_response(request, "ops/runs/news.html", shown)


def _curl(request: HttpRequest) -> str:
    """The command that sends an event, one that somebody listens to if there is any."""
    listened = EventHandler.objects.filter(is_active=True).order_by("name").values_list("event", flat=True).first()
    event = json.dumps({"event": listened or "conductor:orders:paid", "id": "4711", "total": 12}, ensure_ascii=False)
    address = f"{request.scheme}://{request.get_host()}/api/event/handleIncomingEvent"
    return f"curl -X POST {address} -H 'Content-Type: application/json' \\\n  -d {shlex.quote(event)}"


class EventPage(ObjectPage):
    """One event: where it came from, what it carried, what each handler made of it."""

    name, template, permission = "event", "ops/events/event.html", VIEW
    route = "events/<int:event_id>/"

    def get_context(self, request: HttpRequest, **which: Any) -> dict[str, Any]:
        row = find_event(which["event_id"], annotate_documents(EventDelivery.objects.defer("payload"), ("payload",)))
        [told] = events.load_events([row.pk])
        return {
            "title": row.event,
            "row": row,
            "made": formatting.handler_outcomes(told),
            "again": formatting.repeat_note(row.duplicates) if row.duplicates else "",
            "source": formatting.source_label(row.source),
            "payload": payload_documents(row, ("payload",))[0],
            "replays": list(row.replays.defer("payload").order_by("-pk")[:MOST_REPLAYS]),
            "tab": "received",
        }

    def urls(self, site: AdminSite) -> list[URLPattern]:
        raw = path(f"{self.route}payload/", site.admin_view(self.raw), name="event_payload")
        return [raw, *super().urls(site)]

    def raw(self, request: HttpRequest, event_id: int) -> HttpResponse:
        """What it carried, as a file."""
        self._admit(request)
        row = get_or_404(find_event, event_id)
        return json_file_response(row.payload, f"event-{row.pk}")


def find_event(event_id: int, rows: Any = None) -> EventDelivery:
    """The event of the address. Raises NotFound."""
    rows = EventDelivery.objects.all() if rows is None else rows
    row = rows.filter(pk=event_id).first() if event_id < 2**63 else None
    if row is None:
        raise NotFound(_("There is no such event: events are kept for as many days as EVENT_RETENTION_DAYS says."))
    return row


def event_address(event_id: int) -> str:
    """The address of an event's page."""
    return reverse("admin:event", args=[event_id])
