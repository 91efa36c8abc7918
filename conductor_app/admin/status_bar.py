"""The status bar that is on every page and refreshes while the page is open."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from .. import clock
from ..insight.monitoring.health import EngineHealth, engine_health
from .fragments import fragment_response
from .pages import Page


def health_for(request: HttpRequest) -> EngineHealth:
    """Return the health of the engine, which is measured once per request."""
    measured: EngineHealth | None = getattr(request, "engine_health", None)
    if measured is None:
        measured = engine_health(clock.now())
        vars(request)["engine_health"] = measured
    return measured


class StatusBarPage(Page):
    """Fragment with the engine's health, computed from measured lag. Open to every user who may sign in."""

    name = "status_bar"

    def is_open_to(self, request: HttpRequest) -> bool:
        return request.user.is_staff

    def urls(self, site) -> list[URLPattern]:
        return [path("status-bar/", site.admin_view(self.live), name=self.name)]

    def live(self, request: HttpRequest) -> HttpResponse:
        context: dict[str, Any] = {
            "health": health_for(request),
            "sees_sweeps": request.user.has_perm("conductor.view_sweeppass"),
        }
        return fragment_response(request, "ops/engine_status.html", context)

    def sidebar_entry(self) -> dict[str, Any]:
        return {}
