"""Access to metrics, for users who may see all runs and for monitoring systems with a configured token."""

from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from .. import conf
from ..core.errors import Forbidden
from .access_types import READ, WORKFLOW, WORKFLOW_DEF
from .conductor_auth import authenticate, authenticate_token


def require_metrics_access(request: HttpRequest) -> None:
    """Check the permission to read metrics.

    Raises:
        Unauthenticated: when the credentials are missing or invalid
        Forbidden: when the caller may not see all runs.
    """
    kind, _, credential = request.headers.get("Authorization", "").partition(" ")
    is_bearer = kind.lower() == "bearer" and conf.api_access != "open"
    if is_bearer and any(constant_time_compare(credential, token) for token in conf.metrics_tokens):
        return
    # Prometheus supports only bearer tokens. A token of the API is accepted as one, too.
    actor = authenticate_token(credential) if is_bearer else authenticate(request)
    if not actor.permissions.allows_all((READ, WORKFLOW), (READ, WORKFLOW_DEF)):
        raise Forbidden(f"{actor.name} may not see all runs, which the metrics require.", code="FORBIDDEN")
