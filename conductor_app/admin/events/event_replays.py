"""Replay of an event: a preview of the result for each handler, and the replay itself."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from ...core.errors import RequestRefused
from ...engine.events import event_replays
from ..error_messages import show_refusal
from ..object_pages import ObjectPage
from .event_pages import event_address, find_event
from .event_trials import preview_view

REPLAY_PERMISSION = "conductor.execute_event_handler"


class ReplayPage(ObjectPage):
    """Page that replays an event."""

    name, template, permission = "event_replay", "ops/events/replay.html", REPLAY_PERMISSION
    route = "events/<int:event_id>/replay/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        row = find_event(url_kwargs["event_id"])
        context = {"title": _("Replay %(event)s") % {"event": row.event}, "row": row}
        try:
            return context | {"plan": [preview_view(each) for each in event_replays.plan_replay(row)]}
        except RequestRefused as refused:
            return context | {"plan": [], "refused": refused.message}

    def handle_post(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse:
        row, by = find_event(url_kwargs["event_id"]), request.user.get_username()
        names, reason = request.POST.getlist("handler"), request.POST.get("reason", "").strip()
        address = reverse("admin:event_replay", args=[row.pk])
        if not names or not reason:
            message = _("Select at least one handler.") if reason else _("Enter a reason.")
            messages.error(request, message)
            return HttpResponseRedirect(address)
        try:
            fresh = event_replays.replay(row.pk, names, by, reason)
        except RequestRefused as refused:
            show_refusal(request, refused)
            return HttpResponseRedirect(address)
        messages.success(request, _("Replayed. The result is below."))
        return HttpResponseRedirect(event_address(fresh.pk))
