"""Base class of a page that is not a list of one table, such as the overview or the queues.

A page declares its name in the address, its title, its template and the permission that it requires, and implements
`get_context`. A page with a `live_template` refreshes itself. Its template contains

    <div data-live="{{ live_address }}" data-rev="{{ live_revision }}">{% include page.live_template %}</div>

and `static/ops/live.js` polls that address, which answers 204 while nothing has changed.
"""

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise

from .error_messages import require_permission
from .fragments import fragment_response, html_revision


class Page:
    """One page: its name in the address, its title, its template, and the permission that it requires."""

    name = ""
    title: str | Promise = ""
    template = ""
    permission = ""
    live_template = ""

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the context of the template.

        Raises:
            NotImplementedError: when the subclass does not implement it.
        """
        raise NotImplementedError

    def post(self, request: HttpRequest) -> HttpResponse:
        """Handle a form of the page."""
        return HttpResponseNotAllowed(["GET"])

    def is_open_to(self, request: HttpRequest) -> bool:
        return request.user.has_perm(self.permission)

    def urls(self, site: AdminSite) -> list[URLPattern]:
        """Return the URL patterns of the page."""

        def view(request: HttpRequest) -> HttpResponse:
            self._require_access(request)
            if request.method == "POST":
                return self.post(request)
            context = {**site.each_context(request), "title": self.title, "page": self, **self.get_context(request)}
            if self.live_template:
                html = render_to_string(self.live_template, context, request)
                context |= {"live_address": reverse(f"admin:{self.name}_live"), "live_revision": html_revision(html)}
            return TemplateResponse(request, self.template, context)

        def live(request: HttpRequest) -> HttpResponse:
            self._require_access(request)
            return fragment_response(request, self.live_template, self.get_context(request))

        address = self.name.replace("_", "-")
        lines = [path(f"{address}/", site.admin_view(view), name=self.name)]
        if self.live_template:
            lines.append(path(f"{address}/live/", site.admin_view(live), name=f"{self.name}_live"))
        return lines

    def _require_access(self, request: HttpRequest) -> None:
        if not self.is_open_to(request):
            require_permission(request, self.permission)

    def sidebar_entry(self) -> dict[str, Any]:
        """Return the page in the form in which Django's sidebar lists models."""
        address = reverse(f"admin:{self.name}")
        return {"name": self.title, "object_name": self.name, "admin_url": address, "add_url": None, "view_only": True}
