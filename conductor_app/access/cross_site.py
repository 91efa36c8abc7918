"""Protection of servers without authentication: requests that a browser sends for other sites are refused."""

from urllib.parse import urlsplit

from django.http import HttpRequest

from ..core.errors import Forbidden


def reject_cross_site_requests(request: HttpRequest) -> None:
    """Refuse a request that a page of another site has sent. No client library sends these headers.

    Raises:
        Forbidden: when another site has sent it.
    """
    meta = request.META
    origin = meta.get("HTTP_ORIGIN")
    is_foreign = meta.get("HTTP_SEC_FETCH_SITE") == "cross-site" or (
        origin and urlsplit(origin).netloc != _host_of(request)
    )
    if is_foreign:
        raise Forbidden("Requests from pages of other sites are not allowed.")


def _host_of(request: HttpRequest) -> str:
    return request.get_host()
