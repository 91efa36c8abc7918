"""The OpenAPI document, and a page to read it and try it with: served from here, nothing comes from elsewhere."""

import json
from functools import cache
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.templatetags.static import static
from django.urls import reverse
from django.views.generic import TemplateView
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings

from .... import conf
from ..replies import Json
from ..view import ConductorRequest, ConductorView

ABOUT = {
    "TITLE": "Conductor workflows and tasks",
    "DESCRIPTION": "Durable workflows and tasks for your workers, as Conductor's clients speak to them.",
    "VERSION": "1",
}


@cache
def document() -> dict[str, Any]:
    """The document, drawn once."""
    with patched_settings(ABOUT):
        return SchemaGenerator().get_schema(public=True)


class OpenApiDocument(ConductorView):
    """GET /api/openapi.json: every operation of the API."""

    schema = None

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(document())


class OpenApiPage(TemplateView):
    """GET /api/docs: the same to read and to try; a browser that is logged in to the admin sends its own login."""

    template_name = "drf_spectacular/swagger_ui.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if conf.api_access != "open" and not request.user.is_staff:
            return redirect_to_login(request.get_full_path(), reverse("admin:login"))
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        files = {
            "css": "swagger-ui.css",
            "bundle": "swagger-ui-bundle.js",
            "standalone": "swagger-ui-standalone-preset.js",
        }
        return {
            **{f"swagger_ui_{name}": _file(file) for name, file in files.items()},
            "title": ABOUT["TITLE"],
            "favicon_href": _file("favicon-32x32.png"),
            "schema_url": reverse("openapi"),
            "settings": json.dumps({"deepLinking": True, "persistAuthorization": False}),
            "oauth2_config": "{}",
            "template_name_js": "drf_spectacular/swagger_ui.js",
            "script_url": None,
            "csrf_header_name": "X-CSRFTOKEN",
            "schema_auth_names": "[]",
        }


def _file(name: str) -> str:
    return static(f"drf_spectacular_sidecar/swagger-ui-dist/{name}")
