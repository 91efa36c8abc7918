"""Views of the server's version and configuration."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from django.http import HttpResponse

from .... import conf
from ..api_operation import PLAIN_TEXT, ApiOperation
from ..openapi import tables as shapes
from ..permission_rules import ALLOW_ALL
from ..replies import Json, PlainText
from ..view import ConductorRequest, ConductorView


class ServerVersion(ConductorView):
    """GET /api/version: get the version of this server."""

    operations = {
        "get": ApiOperation("Get the version of the server", reply=PLAIN_TEXT),
    }

    needs_login = False

    def get(self, request: ConductorRequest) -> HttpResponse:
        return PlainText(server_version())


class Configuration(ConductorView):
    """GET /api/admin/config: return the configuration that clients may see, as text."""

    operations = {
        "get": ApiOperation("Get the configuration of the server", permission=ALLOW_ALL, reply=shapes.CONFIGURATION),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json({
            "version": server_version(),
            "apiAccess": str(conf.api_access),
            "ownerEmailMandatory": str(conf.owner_email_mandatory).lower(),
        })  # fmt: skip


@cache
def server_version() -> str:
    """Return the version of the installed package, or `checkout` if the package is not installed."""
    try:
        return version("conductor-app")
    except PackageNotFoundError:
        return "checkout"
