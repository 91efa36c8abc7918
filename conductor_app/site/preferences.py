"""Preferences of the user: time zone, density of tables, and digests by email."""

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..alerts import digests
from ..core.errors import RequestRefused
from ..web.pages import Page, show_refusal
from ..web.preferences import DENSITIES, all_zones, save_preference, zone_of

DIGEST_LABELS = {
    "": gettext_lazy("Never"),
    "daily": gettext_lazy("Every day at 7:00"),
    "weekly": gettext_lazy("Every Monday at 7:00"),
}


class PreferencesPage(Page):
    """Page with the user's preferences."""

    name, title, template = "preferences", gettext_lazy("Preferences"), "ops/web/preferences.html"

    def is_open_to(self, request: HttpRequest) -> bool:
        return request.user.is_active

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "zone": zone_of(request),
            "zones": sorted(all_zones()),
            "digest": digests.subscribed_period(cast(User, request.user)),
            "digest_periods": DIGEST_LABELS.items(),
            "may_have_digest": request.user.has_perm(digests.PERMISSION),
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        if "zone" in request.POST:
            _use_time_zone(request, request.POST["zone"].strip())
        if "density" in request.POST:
            _use_density(request, request.POST["density"])
        _update_digest(request)
        after = request.headers.get("Referer", "")
        is_local = url_has_allowed_host_and_scheme(after, {request.get_host()}, require_https=request.is_secure())
        return HttpResponseRedirect(after if is_local else reverse("admin:preferences"))


def _use_density(request: HttpRequest, density: str) -> None:
    if density in DENSITIES:
        save_preference(request, density=density)
    else:
        messages.error(request, _("Unsupported density: %(density)r.") % {"density": density[:20]})


def _use_time_zone(request: HttpRequest, zone: str) -> None:
    if zone in all_zones():
        save_preference(request, zone=zone)
        messages.success(request, _("Times are now shown in %(zone)s.") % {"zone": zone})
    else:
        unknown = {"zone": repr(zone[:80])}
        messages.error(request, _("Unknown time zone: %(zone)s. Use a name such as Europe/Berlin.") % unknown)


def _update_digest(request: HttpRequest) -> None:
    """Start, change or end the user's digests, which follow the user's time zone."""
    user = cast(User, request.user)
    before = digests.subscribed_period(user)
    period = request.POST.get("digest", before)
    try:
        if period:
            digests.subscribe(user, period, zone_of(request))
        elif before:
            digests.unsubscribe(user)
    except RequestRefused as refused:
        show_refusal(request, refused)
        return
    if period != before:
        messages.success(request, _("Digest by email: %(period)s.") % {"period": DIGEST_LABELS[period]})
