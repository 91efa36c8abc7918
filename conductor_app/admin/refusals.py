"""Refusals on pages: which permission is missing and who gives it, which rule forbids, and the way out."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join

from ..core.errors import Refused


def require(request: HttpRequest, permission: str) -> None:
    """Raise unless the person has the permission; the page that answers names it."""
    if not request.user.has_perm(permission):
        raise PermissionDenied(permission)


def tell(request: HttpRequest, refused: Refused, *ways_out: tuple[str, str]) -> None:
    """Say on the next page why the engine refused, with links (label, address) to what can be done instead."""
    links = format_html_join("", ' <a href="{1}">{0}</a>', ways_out)
    messages.error(request, format_html("{}{}", refused.message, links))
