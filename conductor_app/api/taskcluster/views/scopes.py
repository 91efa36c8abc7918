"""Scopes: what they stand for, what a caller holds, and who has signed a request that another service was sent."""

from django.http import HttpResponse

from ....access.clients import expand_scopes
from ....access.hawk import HawkRequest
from ....access.taskcluster_auth import identify_caller
from ....core.errors import Unauthenticated
from ....insight.standalone import format_timestamp
from ..replies import Json
from ..view import TaskclusterRequest, TaskclusterView


class Expand(TaskclusterView):
    """/scopes/expand: the scopes with all that their roles imply."""

    methods = {"POST": "expandScopes"}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return Json({"scopes": expand_scopes(request.document["scopes"])})


class Current(TaskclusterView):
    """/scopes/current: what the caller holds."""

    methods = {"GET": "currentScopes"}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json({"scopes": list(request.caller.listed)})


class AuthenticateHawk(TaskclusterView):
    """/authenticate-hawk: who has signed this, for services that cannot look it up themselves."""

    methods = {"POST": "authenticateHawk"}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        said = request.document
        asked = HawkRequest(said["method"], said["resource"], said["host"], str(said["port"]))
        try:
            caller = identify_caller(asked, said.get("authorization", ""))
        except Unauthenticated as refused:
            return Json({"status": "auth-failed", "message": refused.message})
        if caller.signed is None:
            return Json({"status": "no-auth", "scheme": "none", "scopes": list(caller.listed)})
        found = {"status": "auth-success", "scheme": "hawk", "clientId": caller.client_id}
        found |= {"scopes": list(caller.listed), "expires": format_timestamp(caller.expires_at or 0)}
        return Json(found | ({"hash": caller.signed.hash} if caller.signed.hash else {}))
