"""Who reads the operators' pages: in which language, and moments in which zone.

Only pages have a reader. What the API answers, what is written into rows and what is exported stays English.
"""

from collections.abc import Callable
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers

from .choices import saved_preferences

UTC = "UTC"
ResponseHandler = Callable[[HttpRequest], HttpResponse]


def user_locale_middleware(get_response: ResponseHandler) -> ResponseHandler:
    """Middleware: the operators' pages speak the language and say moments in the zone that their reader has chosen."""

    def handle_request(request: HttpRequest) -> HttpResponse:
        if not request.path.startswith("/admin/"):
            return get_response(request)
        with translation.override(language_of(request)), timezone.override(ZoneInfo(zone_of(request))):
            response = get_response(request)
            response.headers.setdefault("Content-Language", translation.get_language())
        patch_vary_headers(response, ["Accept-Language"])
        return response

    return handle_request


def language_of(request: HttpRequest) -> str:
    """The code of the reader's language: what was chosen, else what the browser asks for."""
    return chosen_language(request) or translation.get_language_from_request(request)


def chosen_language(request: HttpRequest) -> str:
    """The language that the reader has chosen; empty where the browser's is taken."""
    chosen = saved_preferences(request).get("language", "")
    return chosen if chosen in dict(settings.LANGUAGES) else ""


def zone_of(request: HttpRequest) -> str:
    """The name of the reader's zone."""
    chosen = saved_preferences(request).get("zone", UTC)
    return chosen if chosen in all_zones() else UTC


@cache
def all_zones() -> frozenset[str]:
    """The names of all zones; kept, since the system's files are looked through for them."""
    return frozenset(available_timezones())
