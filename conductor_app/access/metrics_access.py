"""Who may read the metrics: whoever may see all runs, and a monitoring system with a token of its own."""

from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from .. import conf
from ..core.errors import Forbidden
from .access_types import READ, WORKFLOW, WORKFLOW_DEF
from .conductor_auth import authenticate, authenticate_token


def require_metrics_access(request: HttpRequest) -> None:
    """Raise Unauthenticated or Forbidden where the metrics are none of the asker's business."""
    kind, _, credential = request.headers.get("Authorization", "").partition(" ")
    is_bearer = kind.lower() == "bearer" and conf.api_access != "open"
    if is_bearer and any(constant_time_compare(credential, token) for token in conf.metrics_tokens):
        return
    # Prometheus knows bearer tokens only: one of the API is as good here.
    actor = authenticate_token(credential) if is_bearer else authenticate(request)
    if not actor.permissions.allows_all((READ, WORKFLOW), (READ, WORKFLOW_DEF)):
        raise Forbidden(f"{actor.name} may not see all runs, and so not these numbers.", code="FORBIDDEN")
