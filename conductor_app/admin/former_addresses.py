"""Redirects from addresses of pages that were renamed, so that bookmarks and links in tickets keep working."""

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.urls import URLPattern, path, reverse

RENAMED = {
    "alert_targets": "alert-targets",
    "conductor/group": "conductor/taskgroup",
    "conductor/solo": "conductor/standalonetask",
    "definition_drift": "definition-drift",
    "event_sources": "event-sources",
    "find": "search",
    "form_templates": "form-templates",
    "model_usage": "model-usage",
    "pulse": "overview-activity",
    "schedule_week": "schedule-calendar",
    "sweeps": "background-jobs",
    "turn": "why-waiting",
    "undelivered_messages": "undelivered-messages",
    "vector_indexes": "vector-indexes",
    "waiting": "human-tasks",
}
"""The first segments of former addresses and those of the present ones. The rest of an address is the same."""


def former_addresses() -> list[URLPattern]:
    """Return URL patterns that redirect the former addresses."""
    return [
        path(f"{former}/{rest}", redirect_to_present_address, {"former": former})
        for former in RENAMED
        for rest in ("", "<path:rest>")
    ]


def redirect_to_present_address(request: HttpRequest, former: str, rest: str = "") -> HttpResponse:
    """Redirect a request permanently and keep its query. The page of the present address checks permissions."""
    index = reverse("admin:index")
    remaining = request.get_full_path().removeprefix(f"{index}{former}/")
    return HttpResponsePermanentRedirect(f"{index}{RENAMED[former]}/{remaining}")
