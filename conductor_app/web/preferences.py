"""Language and time zone of the user who reads a page.

Only pages are translated, into those of `settings.LANGUAGES`. API responses, stored rows and exports are English.
"""

from collections.abc import Callable
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers

from .choices import saved_preferences

UTC = "UTC"
ResponseHandler = Callable[[HttpRequest], HttpResponse]


def user_locale_middleware(get_response: ResponseHandler) -> ResponseHandler:
    """Activate the browser's language and the user's time zone on the operators' pages (middleware)."""

    def handle_request(request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith("/admin/"):
            return get_response(request)
        language = translation.get_language_from_request(request)
        with translation.override(language), timezone.override(ZoneInfo(zone_of(request))):
            response = get_response(request)
            response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ["Accept-Language"])
        return response

    return handle_request


def zone_of(request: HttpRequest) -> str:
    """Return the name of the user's time zone."""
    preference = saved_preferences(request).get("zone", UTC)
    return preference if preference in all_zones() else UTC


@cache
def all_zones() -> frozenset[str]:
    """Return the names of all time zones. Cached, because reading them searches the system's files."""
    return frozenset(available_timezones())
