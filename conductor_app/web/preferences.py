"""Preferences of the user: time zone and density of tables, stored in the database, copied into the session at login.

Only pages are translated, into those of `settings.LANGUAGES`. API responses, stored rows and exports are English.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, cast
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..access.models import Preference
from ..settings import conf
from .pages import Page

SESSION_KEY = "ops_choices"
COMPACT = "compact"
DENSITIES = ("comfortable", COMPACT)
"""The heights of rows in tables."""
UTC = "UTC"
ResponseHandler = Callable[[HttpRequest], HttpResponse]


def restore_preferences(request: HttpRequest, user: AbstractBaseUser, **_: object) -> None:
    """Copy the user's preferences into the new session."""
    row = Preference.objects.filter(pk=user.pk).first()
    if row is not None:
        request.session[SESSION_KEY] = row.choices


def saved_preferences(request: HttpRequest) -> dict[str, Any]:
    """Return the user's preferences by name."""
    if SESSION_KEY not in request.session and not conf.is_server and request.user.is_authenticated:
        # Another project signs its users in itself.
        row = Preference.objects.filter(pk=request.user.pk).first()
        request.session[SESSION_KEY] = row.choices if row is not None else {}
    return request.session.get(SESSION_KEY, {})


def is_compact(request: HttpRequest) -> bool:
    """Return True if the rows of tables are compact."""
    return saved_preferences(request).get("density") == COMPACT


def save_preference(request: HttpRequest, **changes: Any) -> None:
    """Store preferences for this session and later ones."""
    preferences = {**saved_preferences(request), **changes}
    Preference.objects.update_or_create(user_id=cast(User, request.user).pk, defaults={"choices": preferences})
    request.session[SESSION_KEY] = preferences


def user_locale_middleware(get_response: ResponseHandler) -> ResponseHandler:
    """Activate the browser's language and the user's time zone on the operators' pages (middleware)."""

    def handle_request(request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith("/admin/"):
            return get_response(request)
        # A server may have other languages; for another project, the mount has chosen one.
        language = translation.get_language_from_request(request) if conf.is_server else translation.get_language()
        with translation.override(language), timezone.override(ZoneInfo(zone_of(request))):
            response = get_response(request)
            response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ["Accept-Language"])
        return response

    return handle_request


def zone_of(request: HttpRequest) -> str:
    """Return the name of the user's time zone."""
    preference = saved_preferences(request).get("zone")
    return preference if preference in all_zones() else settings.TIME_ZONE


@cache
def all_zones() -> frozenset[str]:
    """Return the names of all time zones. Cached, because reading them searches the system's files."""
    return frozenset(available_timezones())


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
