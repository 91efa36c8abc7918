"""Views of scopes: expand them, list those of the caller, and authenticate requests for other services."""

from django.http import HttpResponse

from ....access.clients import expand_scopes
from ....access.hawk import HawkRequest
from ....access.taskcluster_auth import identify_caller
from ....core.errors import Unauthenticated
from ....insight.standalone.task_status import format_timestamp
from ..method_scopes import ApiMethod
from ..replies import Json
from ..view import TaskclusterRequest, TaskclusterView


class ExpandScopes(TaskclusterView):
    """/scopes/expand: expand scopes with those that their roles grant."""

    methods = {"POST": ApiMethod("expandScopes", scopes="auth:expand-scopes")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return Json({"scopes": expand_scopes(request.document["scopes"])})


class CurrentScopes(TaskclusterView):
    """/scopes/current: list the scopes of the caller."""

    methods = {"GET": ApiMethod("currentScopes", scopes="auth:current-scopes")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json({"scopes": list(request.caller.scope_list)})


class AuthenticateHawk(TaskclusterView):
    """/authenticate-hawk: authenticate a signed request for a service that cannot do so itself."""

    methods = {"POST": ApiMethod("authenticateHawk", is_public=True)}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        document = request.document
        hawk_request = HawkRequest(document["method"], document["resource"], document["host"], str(document["port"]))
        try:
            caller = identify_caller(hawk_request, document.get("authorization", ""))
        except Unauthenticated as refused:
            return Json({"status": "auth-failed", "message": refused.message})
        if caller.signature is None:
            return Json({"status": "no-auth", "scheme": "none", "scopes": list(caller.scope_list)})
        reply = {"status": "auth-success", "scheme": "hawk", "clientId": caller.client_id}
        reply |= {"scopes": list(caller.scope_list), "expires": format_timestamp(caller.expires_at or 0)}
        return Json(reply | ({"hash": caller.signature.hash} if caller.signature.hash else {}))
