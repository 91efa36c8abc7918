"""The OpenAPI document, and a page to read it and try it with: served from here, nothing comes from elsewhere."""

from typing import Any

from django.templatetags.static import static
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerView
from rest_framework.request import Request
from rest_framework.response import Response

ABOUT = {
    "TITLE": "Conductor workflows and tasks",
    "DESCRIPTION": "Durable workflows and tasks for your workers, as Conductor's clients speak to them.",
    "VERSION": "1",
}


class OpenApiDocument(SpectacularJSONAPIView):
    """GET /api/openapi.json"""

    authentication_classes = permission_classes = ()
    custom_settings = ABOUT
    schema = AutoSchema()

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


class OpenApiPage(SpectacularSwaggerView):
    """GET /api/docs"""

    authentication_classes = permission_classes = ()
    url_name = "openapi"
    title = ABOUT["TITLE"]
    schema = AutoSchema()

    @staticmethod
    def _swagger_ui_resource(filename: str) -> str:
        return static(f"drf_spectacular_sidecar/swagger-ui-dist/{filename}")

    @classmethod
    def _swagger_ui_favicon(cls) -> str:
        return cls._swagger_ui_resource("favicon-32x32.png")
