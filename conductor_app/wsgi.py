"""The WSGI application, for servers such as gunicorn."""

import os
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

from django.core.wsgi import get_wsgi_application

from .api.conductor.names_with_slashes import mark_slashes

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conductor_app.settings.embedded")

STREAMED_PREFIX = "/api/artifacts/"
"""The prefix of paths with bodies that may be larger than memory; they are streamed."""
Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


def with_chunked_bodies(application: Application) -> Application:
    """Set a length for bodies of unknown length, which Django does not read: the JavaScript SDK sends them."""

    def answer(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        is_chunked = environ.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked"
        if (
            is_chunked
            and not environ.get("CONTENT_LENGTH")
            and not environ.get("PATH_INFO", "").startswith(STREAMED_PREFIX)
        ):
            read_full_body(environ)
        return application(environ, start_response)

    return answer


def read_full_body(environ: Environ) -> None:
    """Read the body up to one byte more than is allowed; the API then refuses it in its own words."""
    from . import conf

    body = environ["wsgi.input"].read(conf.max_request_bytes + 1)
    environ["wsgi.input"], environ["CONTENT_LENGTH"] = BytesIO(body), str(len(body))


def with_slashes_in_names(application: Application) -> Application:
    """Distinguish slashes inside names from those around them, on servers that pass the original target."""

    def answer(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if path := mark_slashes(environ.get("RAW_URI", "")):
            environ["PATH_INFO"] = path
        return application(environ, start_response)

    return answer


application = with_slashes_in_names(with_chunked_bodies(get_wsgi_application()))
