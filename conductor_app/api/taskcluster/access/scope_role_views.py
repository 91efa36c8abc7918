"""Views of roles. A caller can only give scopes that it has."""

from django.http import HttpResponse

from ....engine.access import scope_roles
from ....models import ScopeRole
from ..method_scopes import CREATE_ROLE_SCOPES, UPDATE_ROLE_SCOPES, ApiMethod
from ..pagination import PAGE_QUERY_OPTIONS, PageOptions, parse_page
from ..replies import Json, NoContent
from ..view import TaskclusterRequest, TaskclusterView
from .access_serializers import role_document
from .client_views import added_scopes


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
        return Json(role_document(scope_roles.find_role(request.params["roleId"])))

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        scopes = request.document["scopes"]
        request.require(scopes=scope_roles.expand_role_scopes(request.params["roleId"], scopes))
        by = request.caller.client_id
        created = scope_roles.create_role(request.params["roleId"], scopes, request.document["description"], by)
        return Json(role_document(created))

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        document = request.document

        def authorize(row: ScopeRole) -> None:
            added = added_scopes(document["scopes"], row.scopes)
            request.require(scopes=scope_roles.expand_role_scopes(row.id, added))

        by = request.caller.client_id
        changed = scope_roles.update_role(
            request.params["roleId"], document["scopes"], document["description"], by, authorize=authorize
        )
        return Json(role_document(changed))

    def delete(self, request: TaskclusterRequest) -> HttpResponse:
        scope_roles.delete_role(request.params["roleId"], request.caller.client_id)
        return NoContent()
