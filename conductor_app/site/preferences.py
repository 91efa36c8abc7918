"""Preferences of the user: time zone and density of tables."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..web.pages import Page
from ..web.preferences import DENSITIES, all_zones, save_preference, zone_of


class PreferencesPage(Page):
    """Page with the user's preferences."""

    name, title, template = "preferences", gettext_lazy("Preferences"), "ops/web/preferences.html"

    def is_open_to(self, request: HttpRequest) -> bool:
        return request.user.is_active

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "zone": zone_of(request),
            "zones": sorted(all_zones()),
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        if "zone" in request.POST:
            _use_time_zone(request, request.POST["zone"].strip())
        if "density" in request.POST:
            _use_density(request, request.POST["density"])
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
