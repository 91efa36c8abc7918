"""URL patterns of the server: the APIs under /api, the pages under /admin, and health checks."""

from django.urls import include, path, re_path
from django.views.generic import RedirectView

from .admin.site import site
from .api.agents.agent_view import AgentTools
from .api.conductor.events.webhook_views import IncomingWebhook
from .api.conductor.openapi.pages import OpenApiDocument
from .api.conductor.view import UnknownAddress
from .api.health import actuator_health, actuator_info, health, live, ready
from .api.metrics import metrics

urlpatterns = [
    path("api/queue/v1/", include("conductor_app.api.taskcluster.urls")),
    path("api/object/v1/", include("conductor_app.api.taskcluster.object_urls")),
    path("api/artifacts/v1/", include("conductor_app.api.taskcluster.artifact_urls")),
    path("api/auth/v1/", include("conductor_app.api.taskcluster.auth_urls")),
    path("api/", include("conductor_app.api.conductor.urls")),
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

handler400 = "conductor_app.admin.error_pages.bad_request"
handler403 = "conductor_app.admin.error_pages.forbidden"
handler404 = "conductor_app.admin.error_pages.not_found"
handler500 = "conductor_app.admin.error_pages.server_error"
