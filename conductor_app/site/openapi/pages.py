"""The OpenAPI document, and a page to read it and to try requests. All files are served from here."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.templatetags.static import static
from django.urls import reverse

from ...settings import conf
from ...web.api.operations import ApiOperation, Json
from ...web.api.permissions import ALLOW_ALL
from ...web.api.view import ConductorRequest, ConductorView

API_INFO = {
    "TITLE": "Conductor workflows and tasks",
    "DESCRIPTION": "Durable workflows for your workers, with Conductor's REST API "
    "and pages on which operators repair what fails.",
    "VERSION": "1",
}
PAGE_TEMPLATE = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
PAGE_SCRIPT = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
LIBRARY = "drf_spectacular_sidecar/swagger-ui-dist"
LIBRARY_FILES = ("favicon-32x32.png", "swagger-ui.css", "swagger-ui-bundle.js")

_building = Lock()


def build_document() -> dict[str, Any]:
    """Build the document, once per process. The generator takes 5 MB and a quarter of a second.

    The generator loads its extensions when it first runs, and fails if a second thread enters it meanwhile.
    """
    with _building:
        return _build_document()


@cache
def _build_document() -> dict[str, Any]:
    from drf_spectacular.generators import SchemaGenerator
    from drf_spectacular.settings import patched_settings

    with patched_settings(API_INFO):
        return SchemaGenerator().get_schema(public=True)


class OpenApiDocument(ConductorView):
    """GET /api/openapi.json: get the description of every operation."""

    schema = None

    @ApiOperation("", ALLOW_ALL, reply=None)
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(build_document())


def docs_page(request: HttpRequest) -> HttpResponse:
    """GET /api/docs: the same to read and to try; a browser that is logged in to the admin sends its own login."""
    # A request without cookies has no user, because the session middleware skips it.
    user = getattr(request, "user", None)
    if conf.api_access != "open" and not (user is not None and user.is_staff):
        return redirect_to_login(request.get_full_path(), reverse("admin:login"))
    files = (static(f"{LIBRARY}/x") if conf.is_server else reverse("openapi-file", args=["x"])).removesuffix("x")
    addresses = {"document": reverse("openapi"), "script": reverse("openapi-script"), "files": files}
    addresses["cookie"] = settings.CSRF_COOKIE_NAME
    return HttpResponse(PAGE_TEMPLATE.format(title=API_INFO["TITLE"], **addresses))


def docs_script(request: HttpRequest) -> HttpResponse:
    """GET /api/docs.js: the script of the page, in a separate file because pages may not contain inline scripts."""
    return HttpResponse(PAGE_SCRIPT, content_type="text/javascript; charset=utf-8")


def docs_file(request: HttpRequest, name: str) -> FileResponse:
    """GET /api/docs/NAME: a file of the page's library, which another Django project does not have among its apps.

    Raises:
        Http404: when the page has no such file.
    """
    package = find_spec("drf_spectacular_sidecar")
    if name not in LIBRARY_FILES or package is None or not package.submodule_search_locations:
        raise Http404
    path = Path(package.submodule_search_locations[0]) / "static" / LIBRARY / name
    return FileResponse(path.open("rb"), headers={"Cache-Control": "max-age=86400"})
