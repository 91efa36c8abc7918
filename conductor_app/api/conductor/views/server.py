"""The server itself: version, configuration."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from django.http import HttpResponse

from .... import conf
from ..replies import Json, PlainText
from ..view import ConductorRequest, ConductorView


class ServerVersion(ConductorView):
    """GET /api/version: the version of this server."""

    needs_login = False

    def get(self, request: ConductorRequest) -> HttpResponse:
        return PlainText(server_version())


class Configuration(ConductorView):
    """GET /api/admin/config: what a client may know of the configuration, as text."""

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json({
            "version": server_version(),
            "apiAccess": str(conf.api_access),
            "ownerEmailMandatory": str(conf.owner_email_mandatory).lower(),
        })  # fmt: skip


@cache
def server_version() -> str:
    """The version of the installed package; a checkout that is not installed calls itself so."""
    try:
        return version("conductor-app")
    except PackageNotFoundError:
        return "0.1.0-checkout"
