"""Pages and searches read the replica, if there is one; everything else uses the primary."""

from collections.abc import Callable

from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse

from .. import conf
from ..models import replica

Handler = Callable[[HttpRequest], HttpResponse]

PAGES = "/admin/"
PRIMARY_PAGES = ("/admin/login/", "/admin/logout/", "/admin/system/")
"""Pages that change sessions, and the page about the primary."""
SEARCHES = ("/api/workflow/search", "/api/tasks/search", "/api/scheduler/search/", "/api/scheduler/schedules/search")
READ_METHODS = ("GET", "HEAD")
COOKIE = "reads_primary"
"""Set by the response to a command of a page: the next pages show its effect."""
MARGIN_SECONDS = 5


def replica_middleware(get_response: Handler) -> Handler:
    """Serve pages and searches from the replica while it is up and not far behind.

    A request that fails on the replica, because it has gone or because the page writes, is served by the primary.

    Raises:
        MiddlewareNotUsed: when no replica is configured.
    """
    if not replica.is_configured():
        raise MiddlewareNotUsed

    def handle(request: HttpRequest) -> HttpResponse:
        if not may_read_replica(request) or not replica.cached_state.value.state().is_usable:
            return with_cookie(request, get_response(request))
        with replica.read_replica():
            response = get_response(request)
        if not replica.has_failed():
            return response
        replica.cached_state.value.mark_down()
        return get_response(request)

    return handle


def may_read_replica(request: HttpRequest) -> bool:
    """Return True for a page or a search that need not show a change which its user has just made."""
    path = request.path_info
    is_read = request.method in READ_METHODS and COOKIE not in request.COOKIES
    return is_read and (path.startswith(SEARCHES) or (path.startswith(PAGES) and not path.startswith(PRIMARY_PAGES)))


def with_cookie(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Return the response; after a command of a page, the primary serves this browser until the replica has it."""
    if request.method not in READ_METHODS and request.path_info.startswith(PAGES):
        seconds = conf.replica_max_lag_seconds + MARGIN_SECONDS
        response.set_cookie(COOKIE, "1", max_age=seconds, httponly=True, samesite="Lax", secure=request.is_secure())
    return response
