"""A web page must not drive a server that asks for no login: what a browser sends for other sites is refused."""

from urllib.parse import urlsplit

from django.http import HttpRequest

from ..core.errors import Forbidden


def reject_cross_site_requests(request: HttpRequest) -> None:
    """Raise Forbidden if a page of another site has sent the request. No client library sends these headers."""
    meta = request.META
    origin = meta.get("HTTP_ORIGIN")
    is_foreign = meta.get("HTTP_SEC_FETCH_SITE") == "cross-site" or (
        origin and urlsplit(origin).netloc != _host_of(request)
    )
    if is_foreign:
        raise Forbidden("Pages of other sites may not use this API.")


def _host_of(request: HttpRequest) -> str:
    return request.get_host()
