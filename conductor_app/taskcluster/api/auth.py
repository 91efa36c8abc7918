"""The views of clients, roles and scopes. A caller can only give scopes that it has.

Only the response to a creation or a reset has an access token.
"""

from typing import Any

from django.db.models import F
from django.db.models.functions import Left
from django.db.models.lookups import Exact
from django.http import HttpResponse

from ...access.models import Client
from ...core.errors import Unauthenticated
from ..auth import commands
from ..auth.commands import ClientSettings
from ..auth.scopes import expand_saved_scopes, scope_set
from ..auth.signatures import HawkRequest, identify_caller
from ..models import ScopeRole
from ..queries import format_timestamp
from .base import PAGE_QUERY_OPTIONS, Json, NoContent, PageOptions, parse_page, parse_timestamp
from .view import (
    CREATE_CLIENT_SCOPES,
    CREATE_ROLE_SCOPES,
    UPDATE_CLIENT_SCOPES,
    UPDATE_ROLE_SCOPES,
    ApiMethod,
    TaskclusterRequest,
    TaskclusterView,
)


def client_document(row: Client) -> dict[str, Any]:
    """Return a client without its access token."""
    return {
        "clientId": row.id,
        "expires": format_timestamp(row.expires_at),
        "created": format_timestamp(row.created_at),
        "lastModified": format_timestamp(row.updated_at),
        # A client that was never used has a time too.
        "lastDateUsed": format_timestamp(row.used_at or row.created_at),
        "lastRotated": format_timestamp(row.rotated_at),
        "description": row.description,
        "scopes": row.scopes,
        "expandedScopes": expand_saved_scopes(row.scopes),
        "disabled": row.is_disabled,
        "deleteOnExpiration": row.is_deleted_when_expired,
    }


def client_with_token(row: Client, token: str) -> dict[str, Any]:
    """Return a client with its access token."""
    return {**client_document(row), "accessToken": token}


def parse_client(document: dict[str, Any], scopes: list[str]) -> ClientSettings:
    """Return the settings in a client's document."""
    expires_at = parse_timestamp(document["expires"], "expires")
    return ClientSettings(scopes, expires_at, document["description"], document["deleteOnExpiration"])


def role_document(row: ScopeRole) -> dict[str, Any]:
    return {
        "roleId": row.id,
        "scopes": row.scopes,
        "description": row.description,
        "created": format_timestamp(row.created_at),
        "lastModified": format_timestamp(row.updated_at),
        "expandedScopes": expand_saved_scopes(row.scopes),
    }


class ClientList(TaskclusterView):
    """/clients: list the clients whose ids have a prefix."""

    methods = {"GET": ApiMethod("listClients", scopes="auth:list-clients")}
    known_options = ("prefix", *PAGE_QUERY_OPTIONS)

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        page, prefix = parse_page(request.options, str), request.options.get("prefix", "")
        rows = Client.objects.order_by("id")
        if prefix:
            # Not `startswith`, for which SQLite takes capital letters and small ones to be the same.
            rows = rows.filter(Exact(Left(F("id"), len(prefix)), prefix))
        if page.after:
            rows = rows.filter(id__gt=page.after[0])
        return Json(page.reply("clients", list(rows[: page.size + 1]), lambda row: [row.id], client_document))


class ClientOne(TaskclusterView):
    """/clients/{clientId}: get, create, update or delete a client."""

    methods = {
        "GET": ApiMethod("client", scopes="auth:get-client:<clientId>"),
        "PUT": ApiMethod("createClient", scopes_of_facts=CREATE_CLIENT_SCOPES),
        "POST": ApiMethod("updateClient", scopes_of_facts=UPDATE_CLIENT_SCOPES),
        "DELETE": ApiMethod("deleteClient", scopes="auth:delete-client:<clientId>"),
    }

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(client_document(commands.find_client(request.params["clientId"])))

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        scopes = request.document.get("scopes", [])
        request.require(scopes=scopes)
        by = request.caller.client_id
        row, token = commands.create_client(request.params["clientId"], parse_client(request.document, scopes), by)
        return Json(client_with_token(row, token))

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        def authorize(row: Client) -> ClientSettings:
            scopes = request.document.get("scopes", row.scopes)
            request.require(scopes=added_scopes(scopes, row.scopes))
            return parse_client(request.document, scopes)

        changed = commands.authorize_and_update_client(request.params["clientId"], authorize, request.caller.client_id)
        return Json(client_document(changed))

    def delete(self, request: TaskclusterRequest) -> HttpResponse:
        commands.delete_client(request.params["clientId"], request.caller.client_id)
        return NoContent()


def added_scopes(scopes: list[str], previous: list[str]) -> list[str]:
    """Return the scopes that the previous ones do not satisfy."""
    previous_scopes = scope_set(expand_saved_scopes(previous))
    return [scope for scope in scopes if scope not in previous_scopes]


class ResetAccessToken(TaskclusterView):
    """/clients/{clientId}/reset: create a new access token."""

    methods = {"POST": ApiMethod("resetAccessToken", scopes="auth:reset-access-token:<clientId>")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(client_with_token(*commands.reset_token(request.params["clientId"], request.caller.client_id)))


class EnableClient(TaskclusterView):
    """/clients/{clientId}/enable: enable a client."""

    methods = {"POST": ApiMethod("enableClient", scopes="auth:enable-client:<clientId>")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(client_document(commands.set_disabled(request.params["clientId"], False, request.caller.client_id)))


class DisableClient(TaskclusterView):
    """/clients/{clientId}/disable: disable a client."""

    methods = {"POST": ApiMethod("disableClient", scopes="auth:disable-client:<clientId>")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(client_document(commands.set_disabled(request.params["clientId"], True, request.caller.client_id)))


def roles_of_page(page: PageOptions):
    """Return the roles of a page, and one more if there is one."""
    rows = ScopeRole.objects.order_by("id")
    return list((rows.filter(id__gt=page.after[0]) if page.after else rows)[: page.size + 1])


class ScopeRoleList(TaskclusterView):
    """/roles: list all roles."""

    methods = {"GET": ApiMethod("listRoles", scopes="auth:list-roles")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json([role_document(row) for row in ScopeRole.objects.order_by("id")])


class ScopeRolePages(TaskclusterView):
    """/roles2: list a page of roles."""

    methods = {"GET": ApiMethod("listRoles2", scopes="auth:list-roles")}
    known_options = PAGE_QUERY_OPTIONS

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        page = parse_page(request.options, str)
        return Json(page.reply("roles", roles_of_page(page), lambda row: [row.id], role_document))


class ScopeRoleIds(TaskclusterView):
    """/roleids: list a page of the ids of roles."""

    methods = {"GET": ApiMethod("listRoleIds", scopes="auth:list-roles")}
    known_options = PAGE_QUERY_OPTIONS

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        page = parse_page(request.options, str)
        return Json(page.reply("roleIds", roles_of_page(page), lambda row: [row.id], lambda row: row.id))


class ScopeRoleOne(TaskclusterView):
    """/roles/{roleId}: get, create, update or delete a role."""

    methods = {
        "GET": ApiMethod("role", scopes="auth:get-role:<roleId>"),
        "PUT": ApiMethod("createRole", scopes_of_facts=CREATE_ROLE_SCOPES),
        "POST": ApiMethod("updateRole", scopes_of_facts=UPDATE_ROLE_SCOPES),
        "DELETE": ApiMethod("deleteRole", scopes="auth:delete-role:<roleId>"),
    }

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(role_document(commands.find_role(request.params["roleId"])))

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        scopes = request.document["scopes"]
        request.require(scopes=commands.expand_role_scopes(request.params["roleId"], scopes))
        by = request.caller.client_id
        created = commands.create_role(request.params["roleId"], scopes, request.document["description"], by)
        return Json(role_document(created))

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        document = request.document

        def authorize(row: ScopeRole) -> None:
            added = added_scopes(document["scopes"], row.scopes)
            request.require(scopes=commands.expand_role_scopes(row.id, added))

        by = request.caller.client_id
        changed = commands.update_role(
            request.params["roleId"], document["scopes"], document["description"], by, authorize=authorize
        )
        return Json(role_document(changed))

    def delete(self, request: TaskclusterRequest) -> HttpResponse:
        commands.delete_role(request.params["roleId"], request.caller.client_id)
        return NoContent()


class ExpandScopes(TaskclusterView):
    """/scopes/expand: expand scopes with those that their roles grant."""

    methods = {"POST": ApiMethod("expandScopes", scopes="auth:expand-scopes")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return Json({"scopes": expand_saved_scopes(request.document["scopes"])})


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
        return Json({
            "status": "auth-success",
            "scheme": "hawk",
            "clientId": caller.client_id,
            "scopes": list(caller.scope_list),
            "expires": format_timestamp(caller.expires_at or 0),
            **({"hash": caller.signature.hash} if caller.signature.hash else {}),
        })  # fmt: skip
