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
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return HttpResponse(UNHEALTHY, status=503, content_type="application/json")
    return HttpResponse(HEALTHY, content_type="application/json")
