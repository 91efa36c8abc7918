"""What the reader has chosen: read at sign-in, kept in the session and, for the next one, in the database."""

from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.contrib import messages
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from ..models import Preference
from .pages import Page

IN_SESSION = "ops_choices"
UTC = "UTC"


@receiver(user_logged_in)
def recall(request: HttpRequest, user: AbstractBaseUser, **_: Any) -> None:
    """Bring what the person has chosen into the new session."""
    row = Preference.objects.filter(pk=user.pk).first()
    if row is not None:
        request.session[IN_SESSION] = row.choices


def choices(request: HttpRequest) -> dict[str, Any]:
    """What the person has chosen so far, by name."""
    return request.session.get(IN_SESSION, {})


def choose(request: HttpRequest, **chosen: Any) -> None:
    """Keep a choice, for this session and those to come."""
    kept = {**choices(request), **chosen}
    Preference.objects.update_or_create(user_id=request.user.pk, defaults={"choices": kept})
    request.session[IN_SESSION] = kept


def in_the_readers_zone(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: the operators' pages say moments in the zone that their reader has chosen."""

    def answer(request: HttpRequest) -> HttpResponse:
        if not request.path.startswith("/admin/") or not request.user.is_authenticated:
            return get_response(request)
        with timezone.override(ZoneInfo(zone_of(request))):
            return get_response(request)

    return answer


def zone_of(request: HttpRequest) -> str:
    """The name of the reader's zone."""
    chosen = choices(request).get("zone", UTC)
    return chosen if chosen in available_timezones() else UTC


class PreferencesPage(Page):
    """The reader's own choices."""

    name, title, template = "preferences", "Preferences", "ops/preferences.html"

    def is_open_to(self, request: HttpRequest) -> bool:
        return request.user.is_active

    def context(self, request: HttpRequest) -> dict[str, Any]:
        return {"zone": zone_of(request), "zones": sorted(available_timezones())}

    def post(self, request: HttpRequest) -> HttpResponse:
        zone = request.POST.get("zone", "").strip()
        if zone in available_timezones():
            choose(request, zone=zone)
            messages.success(request, f"Moments are shown in {zone}.")
        else:
            messages.error(request, f"There is no time zone {zone[:80]!r}; they are called like Europe/Berlin.")
        return HttpResponseRedirect(reverse("admin:preferences"))
