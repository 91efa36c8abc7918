"""A replay: what an event would lead to now, handler by handler, and then the same for good."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from ...core.errors import RequestRefused
from ...engine import event_replays
from ..error_messages import show_refusal
from ..object_pages import ObjectPage
from .event_pages import event_address, find_event
from .trials import preview_view

REPLAY_PERMISSION = "conductor.execute_event_handler"


class ReplayPage(ObjectPage):
    """Let handlers hear an event again."""

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
            message = _("Choose a handler that hears it again.") if reason else _("Say why it is heard again.")
            messages.error(request, message)
            return HttpResponseRedirect(address)
        try:
            fresh = event_replays.replay(row.pk, names, by, reason)
        except RequestRefused as refused:
            show_refusal(request, refused)
            return HttpResponseRedirect(address)
        messages.success(request, _("It was heard again: below is what came of it."))
        return HttpResponseRedirect(event_address(fresh.pk))
