"""The shape of a page that is not about one table: queues, sweeps."""

from typing import Any

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse


class Page:
    """One page: its name in the address, its title, its template, and the permission that opens it."""

    name = ""
    title = ""
    template = ""
    permission = ""

    def context(self, request: HttpRequest) -> dict[str, Any]:
        """What the template shows."""
        raise NotImplementedError

    def is_open_to(self, request: HttpRequest) -> bool:
        return request.user.has_perm(self.permission)

    def url(self, site: AdminSite) -> URLPattern:
        """The page's line among the site's addresses."""

        def view(request: HttpRequest) -> TemplateResponse:
            if not self.is_open_to(request):
                raise PermissionDenied
            shown = {**site.each_context(request), "title": self.title, **self.context(request)}
            return TemplateResponse(request, self.template, shown)

        return path(f"{self.name}/", site.admin_view(view), name=self.name)

    def in_sidebar(self) -> dict[str, Any]:
        """The page as the sidebar lists models."""
        address = reverse(f"admin:{self.name}")
        return {"name": self.title, "object_name": self.name, "admin_url": address, "add_url": None, "view_only": True}
