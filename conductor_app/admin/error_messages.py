"""Messages for rejected requests: the missing permission, or the reason why the engine rejected a command."""

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
    """Require a permission. The 403 page names it.

    Raises:
        PermissionDenied: when the user does not have the permission.
    """
    if not request.user.has_perm(permission):
        raise PermissionDenied(permission)


VIEW_PERMISSIONS = {"add_view": "add", "delete_view": "delete"}
"""The action that each of Django's own views requires. All other views require `view`."""


def name_missing_permission(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Wrap a view of a ModelAdmin so that PermissionDenied names the permission, which Django's own views leave out.

    Raises:
        PermissionDenied: when the view raises it.
    """
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
    """Show on the next page why the engine rejected a request. `ways_out`: links (label, address) to alternatives."""
    links = format_html_join("", ' <a href="{1}">{0}</a>', ways_out)
    messages.error(request, format_html("{}{}", refused.message, links))
