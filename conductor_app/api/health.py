"""Health checks for load balancers and for the command line client."""

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
    """GET /actuator/health: return the health at the address that monitoring of the original uses."""
    return _health_response(b'{"status":"UP"}', b'{"status":"DOWN"}')


def actuator_info(request: HttpRequest) -> HttpResponse:
    """GET /actuator/info: return an empty document."""
    return HttpResponse(b"{}", content_type="application/json")


def _health_response(healthy_body: bytes, unhealthy_body: bytes) -> HttpResponse:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return HttpResponse(unhealthy_body, status=503, content_type="application/json")
    return HttpResponse(healthy_body, content_type="application/json")
