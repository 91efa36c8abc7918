"""Addresses of pages without empty parameters, because operators paste them into tickets."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect


def without_empty_parameters(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Wrap a view so that the address of a form with empty fields redirects to the same address without them.

    Requests of scripts are not redirected. A parameter without an equals sign, such as `?all`, stays.
    """

    @wraps(view)
    def wrapper(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method == "GET" and "X-Requested-With" not in request.headers:
            query = request.META.get("QUERY_STRING", "")
            parts = query.split("&")
            if len(kept := [part for part in parts if not _is_empty(part)]) < len(parts):
                return HttpResponseRedirect(request.path + (f"?{'&'.join(kept)}" if any(kept) else ""))
        return view(request, *args, **kwargs)

    return wrapper


def _is_empty(parameter: str) -> bool:
    return parameter.partition("=")[1:] == ("=", "")
