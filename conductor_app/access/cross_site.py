"""Protection against requests that a browser sends for pages of other sites, with its cookies or without login."""

from urllib.parse import urlsplit

from django.http import HttpRequest

from ..core.errors import Forbidden


def reject_cross_site_requests(request: HttpRequest) -> None:
    """Refuse a request of a page of another site. Client libraries do not send the headers that identify it.

    Raises:
        Forbidden: when a page of another site has sent the request.
    """
    origin = request.META.get("HTTP_ORIGIN")
    is_foreign = request.META.get("HTTP_SEC_FETCH_SITE") == "cross-site" or (
        origin and _network_location(origin) != _host_of(request)
    )
    if is_foreign:
        raise Forbidden("Requests from pages of other sites are not allowed.")


def _network_location(origin: str) -> str | None:
    """Return host and port of an origin, or None if it is not an address. Browsers send only addresses and `null`."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _host_of(request: HttpRequest) -> str:
    return request.get_host()
