"""Refusals on pages: which permission is missing and who gives it, which rule forbids, and the way out."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join

from ..core.errors import RequestRefused


def require_permission(request: HttpRequest, permission: str) -> None:
    """Raise unless the person has the permission; the page that answers names it."""
    if not request.user.has_perm(permission):
        raise PermissionDenied(permission)


VIEW_PERMISSIONS = {"add_view": "add", "delete_view": "delete"}
"""What the views of Django's lists and forms ask for; the others ask to be allowed to look."""


def name_missing_permission(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The view of a list or a form of Django's, which says by itself that something is missing, but not what."""
    owner = getattr(view, "__self__", None)
    if not isinstance(owner, ModelAdmin):
        return view

    @wraps(view)
    def wrapper(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except PermissionDenied as denied:
            if denied.args:
                raise
            codename = get_permission_codename(VIEW_PERMISSIONS.get(view.__name__, "view"), owner.opts)
            raise PermissionDenied(f"{owner.opts.app_label}.{codename}") from denied

    return wrapper


def show_refusal(request: HttpRequest, refused: RequestRefused, *ways_out: tuple[str, str]) -> None:
    """Say on the next page why the engine refused, with links (label, address) to what can be done instead."""
    links = format_html_join("", ' <a href="{1}">{0}</a>', ways_out)
    messages.error(request, format_html("{}{}", refused.message, links))
