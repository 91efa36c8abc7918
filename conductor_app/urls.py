"""URL patterns of the server: the APIs under /api, the pages under /admin, and health checks."""

from django.urls import include, path, re_path
from django.views.generic import RedirectView

from .agents.api import AgentTools
from .events.api.webhooks import IncomingWebhook
from .monitoring.api import actuator_health, actuator_info, health, live, metrics, ready
from .site.admin import site
from .site.api_urls import SERVICES
from .site.openapi.pages import OpenApiDocument
from .web.api.view import UnknownAddress

urlpatterns = [
    path("api/", include(SERVICES)),
    path("api/", include("conductor_app.site.api_urls")),
    re_path(r"^api$", UnknownAddress.as_view()),
    path("mcp", AgentTools.as_view()),
    path("webhook/<str:id>", IncomingWebhook.as_view()),
    path("health", health),
    path("health/live", live),
    path("health/ready", ready),
    path("actuator/health", actuator_health),
    path("actuator/info", actuator_info),
    path("api-docs", OpenApiDocument.as_view()),
    path("swagger-ui/index.html", RedirectView.as_view(pattern_name="openapi-page")),
    path("metrics", metrics),
    path("actuator/prometheus", metrics),
    path("admin/", site.urls),
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]

handler400 = "conductor_app.site.error_pages.bad_request"
handler403 = "conductor_app.site.error_pages.forbidden"
handler404 = "conductor_app.site.error_pages.not_found"
handler500 = "conductor_app.site.error_pages.server_error"
