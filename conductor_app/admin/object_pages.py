"""The shape of a page about one thing: a group of failures, an operation, a queue. Its address names the thing."""

from collections.abc import Callable
from typing import Any

from django.contrib.admin import AdminSite
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from ..core.errors import NotFound
from .fragments import fragment_response, html_revision
from .pages import Page


class ObjectPage(Page):
    """One page of many: `route` is its address, with what finds the thing; `shown` and `sent` are told that too."""

    route = ""

    def shown(self, request: HttpRequest, **which: Any) -> dict[str, Any]:
        """What the template shows, the title among it. Raises NotFound."""
        raise NotImplementedError

    def sent(self, request: HttpRequest, **which: Any) -> HttpResponse | dict[str, Any]:
        """A form of the page was sent: the answer, or what the template shows of it. Raises NotFound."""
        return HttpResponseNotAllowed(["GET"])

    def in_sidebar(self) -> dict[str, Any]:
        """It has no line there: it is reached from the list of its things."""
        return {"object_name": self.name, "admin_url": ""}

    def urls(self, site: AdminSite) -> list[URLPattern]:
        def view(request: HttpRequest, **which: Any) -> HttpResponse:
            self._admit(request)
            told = get_or_404(self.sent if request.method == "POST" else self.shown, request, **which)
            if isinstance(told, HttpResponse):
                return told
            shown = {**site.each_context(request), "page": self, **told}
            if self.live_template:
                html = render_to_string(self.live_template, shown, request)
                address = reverse(f"admin:{self.name}_live", kwargs=which)
                shown |= {"live_address": address, "live_revision": html_revision(html)}
            return TemplateResponse(request, self.template, shown)

        def live(request: HttpRequest, **which: Any) -> HttpResponse:
            self._admit(request)
            return fragment_response(request, self.live_template, get_or_404(self.shown, request, **which))

        lines = [path(self.route, site.admin_view(view), name=self.name)]
        if self.live_template:
            lines.insert(0, path(f"{self.route}live/", site.admin_view(live), name=f"{self.name}_live"))
        return lines


def get_or_404(ask: Callable[..., Any], *given: Any, **which: Any) -> Any:
    """The answer; where there is no such thing, the page says so."""
    try:
        return ask(*given, **which)
    except NotFound as missing:
        raise Http404(missing.message) from missing
