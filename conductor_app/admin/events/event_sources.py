"""Sources of events: what handlers wait for, and the state of connections to other systems."""

from typing import Any

from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ... import clock
from ...insight.events.event_sources import EventSource, event_sources
from ..badges import render_pill
from ..pages import Page
from .event_pages import VIEW_PERMISSION


class SourcesPage(Page):
    """List of event sources."""

    name, title, template, permission = "event_sources", "Events", "ops/events/sources.html", VIEW_PERMISSION
    live_template = "ops/events/source_rows.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        rows = [(source, source_state(source)) for source in event_sources(clock.now())]
        return {"rows": rows, "tab": "sources"}


def source_state(source: EventSource) -> SafeString:
    """Return the state of a source."""
    if source.is_heard_here:
        return render_pill("succeeded", _("Direct (API)"))
    if source.setting:
        return render_pill("failed", _("not configured"))
    if source.connected:
        return render_pill("succeeded", _("connected"))
    if source.failing:
        return render_pill("failed", _("not connected"))
    return render_pill("waiting", _("connecting")) if source.listeners else render_pill("failed", _("no subscriber"))
