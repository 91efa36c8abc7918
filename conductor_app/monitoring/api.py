"""Health checks for load balancers, orchestrators and clients of Conductor.

`/health/live`: this process replies. `/health/ready`: it can accept work. `/health` and `/actuator/health`: the same in
the formats of Conductor and of Spring.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from socket import gethostname
from threading import Lock
from time import monotonic
from typing import Any

import orjson
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from .. import process_state
from ..engine.readiness import ReadinessCheck, check_readiness

CACHE_SECONDS = 1.0


class CachedReadiness:
    """The results of the checks, at most one second old, so that frequent requests cost no writes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._checked_at = float("-inf")
        self._checks: Sequence[ReadinessCheck] = ()

    def checks(self) -> Sequence[ReadinessCheck]:
        """Return the results."""
        with self._lock:
            if monotonic() - self._checked_at > CACHE_SECONDS:
                self._checks, self._checked_at = check_readiness(), monotonic()
            return self._checks


_readiness = process_state.slot(CachedReadiness)


def read_only(view: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Return a view that refuses every method but GET and HEAD, in Conductor's format."""

    @csrf_exempt
    @wraps(view)
    def checked(request: HttpRequest) -> HttpResponse:
        if request.method in ("GET", "HEAD"):
            return view(request)
        message = f"Request method '{request.method}' is not supported"
        body = {"status": 405, "message": message, "retryable": False, "instance": gethostname()}
        headers = {"Allow": "GET, HEAD", "Cache-Control": "no-store"}
        return HttpResponse(orjson.dumps(body), status=405, content_type="application/json", headers=headers)

    return checked


@read_only
def live(request: HttpRequest) -> HttpResponse:
    """GET /health/live: this process replies. It does not use the database."""
    return _json({"status": "live"})


@read_only
def ready(request: HttpRequest) -> HttpResponse:
    """GET /health/ready: the result of each check; 503 if a required one has failed."""
    checks = _checks()
    failed, degraded = _errors(checks, is_required=True), _errors(checks, is_required=False)
    document = {
        "status": "unavailable" if failed else "degraded" if degraded else "ready",
        "checks": [
            {"name": check.name, "healthy": not check.error} | ({"error": check.error} if check.error else {})
            for check in checks
        ],
    }
    return _json(document, failed)


@read_only
def health(request: HttpRequest) -> HttpResponse:
    """GET /health: the same in Conductor's format. Failed checks that leave the server ready are suppressed results."""
    checks = _checks()
    failed, degraded = _errors(checks, is_required=True), _errors(checks, is_required=False)
    document = {"healthResults": failed, "suppressedHealthResults": degraded, "healthy": not failed}
    return _json(document, failed)


@read_only
def actuator_health(request: HttpRequest) -> HttpResponse:
    """GET /actuator/health: the same in Spring's format."""
    failed = _errors(_checks(), is_required=True)
    return _json({"status": "DOWN" if failed else "UP"}, failed)


@read_only
def actuator_info(request: HttpRequest) -> HttpResponse:
    """GET /actuator/info: return an empty document."""
    return _json({})


def _checks() -> Sequence[ReadinessCheck]:
    try:
        return _readiness.value.checks()
    finally:
        if connection.vendor == "postgresql" and not connection.in_atomic_block:
            # These threads serve health checks only, and must not keep a connection of the pool.
            connection.close()


def _errors(checks: Sequence[ReadinessCheck], *, is_required: bool) -> list[dict[str, Any]]:
    return [
        {"healthy": False, "details": {"name": check.name, "error": check.error}}
        for check in checks
        if check.error and check.is_required == is_required
    ]


def _json(document: dict[str, Any], failed: Sequence[Any] = ()) -> HttpResponse:
    status = 503 if failed else 200
    return HttpResponse(
        orjson.dumps(document), status=status, content_type="application/json", headers={"Cache-Control": "no-store"}
    )
