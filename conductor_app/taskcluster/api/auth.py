"""Views of clients. A caller can only give scopes that it has."""

from django.db.models import F
from django.db.models.functions import Left
from django.db.models.lookups import Exact
from django.http import HttpResponse

from ....access.clients import expand_scopes
from ....access.scopes import scope_set
from ....engine.access import clients
from ....engine.access.clients import ClientSettings
from ....models import Client
from ..method_scopes import CREATE_CLIENT_SCOPES, UPDATE_CLIENT_SCOPES, ApiMethod
from ..pagination import PAGE_QUERY_OPTIONS, parse_page
from ..replies import Json, NoContent
from ..view import TaskclusterRequest, TaskclusterView
from .access_serializers import client_document, client_with_token, parse_client


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
        return Json(client_document(clients.find_client(request.params["clientId"])))

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        scopes = request.document.get("scopes", [])
        request.require(scopes=scopes)
        by = request.caller.client_id
        row, token = clients.create_client(request.params["clientId"], parse_client(request.document, scopes), by)
        return Json(client_with_token(row, token))

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        def authorize(row: Client) -> ClientSettings:
            scopes = request.document.get("scopes", row.scopes)
            request.require(scopes=added_scopes(scopes, row.scopes))
            return parse_client(request.document, scopes)

        changed = clients.authorize_and_update_client(request.params["clientId"], authorize, request.caller.client_id)
        return Json(client_document(changed))

    def delete(self, request: TaskclusterRequest) -> HttpResponse:
        clients.delete_client(request.params["clientId"], request.caller.client_id)
        return NoContent()


def added_scopes(scopes: list[str], previous: list[str]) -> list[str]:
    """Return the scopes that the previous ones do not satisfy."""
    previous_scopes = scope_set(expand_scopes(previous))
    return [scope for scope in scopes if scope not in previous_scopes]


class ResetAccessToken(TaskclusterView):
    """/clients/{clientId}/reset: create a new access token."""

    methods = {"POST": ApiMethod("resetAccessToken", scopes="auth:reset-access-token:<clientId>")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(client_with_token(*clients.reset_token(request.params["clientId"], request.caller.client_id)))


class EnableClient(TaskclusterView):
    """/clients/{clientId}/enable: enable a client."""

    methods = {"POST": ApiMethod("enableClient", scopes="auth:enable-client:<clientId>")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(client_document(clients.set_disabled(request.params["clientId"], False, request.caller.client_id)))


class DisableClient(TaskclusterView):
    """/clients/{clientId}/disable: disable a client."""

    methods = {"POST": ApiMethod("disableClient", scopes="auth:disable-client:<clientId>")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(client_document(clients.set_disabled(request.params["clientId"], True, request.caller.client_id)))
