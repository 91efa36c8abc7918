"""Base class of a page about one object, such as a failure group, a bulk operation or a queue."""

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
    """A page about one object. `route` is its address; its parameters are passed to `get_context` and `handle_post`."""

    route = ""

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        """Return the context of the template, including the title.

        Raises:
            NotFound: when there is no such object.
        """
        raise NotImplementedError

    def handle_post(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse | dict[str, Any]:
        """Handle a form of the page. Return a response, or the context to render the page again.

        Raises:
            NotFound: when there is no such object.
        """
        return HttpResponseNotAllowed(["GET"])

    def sidebar_entry(self) -> dict[str, Any]:
        """Return an empty entry: users reach the page from the list of its objects."""
        return {"object_name": self.name, "admin_url": ""}

    def urls(self, site: AdminSite) -> list[URLPattern]:
        def view(request: HttpRequest, **url_kwargs: Any) -> HttpResponse:
            self._require_access(request)
            answer = get_or_404(
                self.handle_post if request.method == "POST" else self.get_context, request, **url_kwargs
            )
            if isinstance(answer, HttpResponse):
                return answer
            context = {**site.each_context(request), "page": self, **answer}
            if self.live_template:
                html = render_to_string(self.live_template, context, request)
                address = reverse(f"admin:{self.name}_live", kwargs=url_kwargs)
                context |= {"live_address": address, "live_revision": html_revision(html)}
            return TemplateResponse(request, self.template, context)

        def live(request: HttpRequest, **url_kwargs: Any) -> HttpResponse:
            self._require_access(request)
            return fragment_response(request, self.live_template, get_or_404(self.get_context, request, **url_kwargs))

        lines = [path(self.route, site.admin_view(view), name=self.name)]
        if self.live_template:
            lines.insert(0, path(f"{self.route}live/", site.admin_view(live), name=f"{self.name}_live"))
        return lines


def get_or_404(find: Callable[..., Any], *args: Any, **url_kwargs: Any) -> Any:
    """Call `find` and return its result.

    Raises:
        Http404: when `find` raises NotFound.
    """
    try:
        return find(*args, **url_kwargs)
    except NotFound as missing:
        raise Http404(missing.message) from missing
