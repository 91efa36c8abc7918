"""Views of access tokens: create one for a key and its secret, and get its user."""

from django.contrib.auth.models import User
from django.http import HttpResponse

from .... import conf
from ....access import access_keys, tokens
from ....core.errors import Invalid, NotFound
from .. import request_body
from ..api_operation import ApiOperation
from ..openapi import tables as shapes
from ..permission_rules import ALLOW_ALL
from ..replies import Json
from ..view import ConductorRequest, ConductorView
from .user_views import user_response


class Tokens(ConductorView):
    """POST /api/token: create an access token for the key and secret of an application."""

    operations = {
        "post": ApiOperation("Create an access token for a key", reply=shapes.TOKEN, body=shapes.CREDENTIALS),
    }

    needs_login = False

    def post(self, request: ConductorRequest) -> HttpResponse:
        if conf.api_access == "open":
            # Clients take this status for a server without authentication and continue without a token.
            raise NotFound("This server does not require tokens.")
        key_id, secret = parse_credentials(request_body.read_object(request))
        key = access_keys.verify_key(key_id, secret)
        return Json({"token": tokens.issue_token(key.id, key.application.name)})


def parse_credentials(document: dict) -> tuple[str, str]:
    """Return the key id and the secret of a request.

    Raises:
        Invalid: when one of them is missing or no text.
    """
    key_id, secret = document.get("keyId"), document.get("keySecret")
    if not isinstance(key_id, str) or not isinstance(secret, str):
        raise Invalid("keyId and keySecret are required and must be texts.")
    return key_id.replace("\0", ""), secret


class TokenUser(ConductorView):
    """GET /api/token/userInfo: get the user of the token, with roles and groups."""

    operations = {
        "get": ApiOperation("Get the user of the access token", permission=ALLOW_ALL, reply=shapes.USER),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        actor = request.actor
        if actor.user_id is None:
            roles = [{"name": "ADMIN", "permissions": []}]
            return Json({"id": actor.name, "name": actor.name, "roles": roles, "groups": [], "applicationUser": False})
        return Json(user_response(User.objects.get(pk=actor.user_id)))
