"""The log lines of requests that met a transient error."""

import logging

from django.http import HttpRequest

from ..core.errors import RequestRefused
from ..transient_errors import describe_transient

log = logging.getLogger(__name__)


def log_transient_error(request: HttpRequest, error: BaseException) -> None:
    """Log why requests fail. During an outage all of them do, so the settings drop repeated lines of this logger.

    A refused request needs no line: its reply has the reason.
    """
    if not isinstance(error, RequestRefused):
        text = f"{type(error).__name__}: {error}"[:500]
        log.error("Requests fail: %s %s", describe_transient(error), text, extra={"path": request.path})
