"""The server itself: tokens, version, configuration."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from django.http import HttpResponse

from .... import conf
from ....access import keys, tokens
from ....core.errors import Invalid, NotFound
from .. import body
from ..replies import Json, PlainText
from ..view import ConductorRequest, ConductorView


class Tokens(ConductorView):
    """POST /api/token: a token for an application's key and secret."""

    needs_login = False

    def post(self, request: ConductorRequest) -> HttpResponse:
        if conf.api_access == "open":
            # Clients take this as a server without logins and go on without a token.
            raise NotFound("This server asks for no tokens.")
        key_id, secret = credentials(body.document(request))
        key = keys.check_key(key_id, secret)
        return Json({"token": tokens.issue(key.id, key.application.name)})


def credentials(document: dict) -> tuple[str, str]:
    """The key and secret that were sent; raises Invalid."""
    key_id, secret = document.get("keyId"), document.get("keySecret")
    if not isinstance(key_id, str) or not isinstance(secret, str):
        raise Invalid("keyId and keySecret are needed, both as text.")
    return key_id.replace("\0", ""), secret


class Version(ConductorView):
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
