"""Run every admin page that only reads inside one database snapshot."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import SimpleTemplateResponse

from ..models.snapshots import read_snapshot

READ_METHODS = ("GET", "HEAD")


def in_read_snapshot(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Run the view, and render its template, inside a read snapshot when the request is a GET or HEAD.

    The middleware saves sessions and messages after the snapshot has ended. A streamed body is also sent after it.
    """

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method not in READ_METHODS:
            return view(request, *args, **kwargs)
        with read_snapshot():
            response = view(request, *args, **kwargs)
            return response.render() if isinstance(response, SimpleTemplateResponse) else response

    return wrapped
