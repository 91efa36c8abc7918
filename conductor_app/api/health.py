"""Whether this server accepts work: asked by load balancers, by the command line client, and by health checks."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse

HEALTHY = b'{"healthResults":[],"suppressedHealthResults":[],"healthy":true}'
UNHEALTHY = (
    b'{"healthResults":[{"healthy":false,"details":{"error":"The database does not answer."}}],'
    b'"suppressedHealthResults":[],"healthy":false}'
)


def health(request: HttpRequest) -> HttpResponse:
    """GET /health: 200 as soon as work is accepted, 503 while the database does not answer."""
    return _health_response(HEALTHY, UNHEALTHY)


def actuator_health(request: HttpRequest) -> HttpResponse:
    """GET /actuator/health: the same, as what watches the original asks for it."""
    return _health_response(b'{"status":"UP"}', b'{"status":"DOWN"}')


def actuator_info(request: HttpRequest) -> HttpResponse:
    """GET /actuator/info: nothing that a stranger may know."""
    return HttpResponse(b"{}", content_type="application/json")


def _health_response(healthy_body: bytes, unhealthy_body: bytes) -> HttpResponse:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return HttpResponse(unhealthy_body, status=503, content_type="application/json")
    return HttpResponse(healthy_body, content_type="application/json")
