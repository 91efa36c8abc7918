"""Users and groups: their members and their permissions."""

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.http import HttpResponse

from ...core.document.fields import MapOf, read_boolean, texts
from ...web.api import requests as request_body
from ...web.api.operations import ApiOperation, ArrayOf, Json
from ...web.api.permissions import ADMINISTRATORS_ONLY, can_view_users
from ...web.api.view import ConductorRequest, ConductorView
from ..commands import users
from ..commands.users import find_group, find_user, list_groups
from ..models import Grant
from ..permissions import ACCESSES, APPLICATION_USER_PREFIX, effective_groups, name_field, read_permission_set
from . import serializers


class Users(ConductorView):
    """GET /api/users: list all users, with those of applications if requested."""

    @ApiOperation("List all users", can_view_users, reply=ArrayOf(serializers.USER), query={"apps": bool})
    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = get_user_model()._default_manager.order_by(name_field())
        if not request.query.flag("apps", False):
            rows = rows.exclude(**{f"{name_field()}__startswith": APPLICATION_USER_PREFIX})
        return Json([serializers.user_document(row) for row in serializers.prefetch_groups(rows)])


class UserOne(ConductorView):
    """GET, PUT, DELETE /api/users/{id}: get, save or delete a user. PUT creates a user who does not exist."""

    @ApiOperation("Get a user", can_view_users, reply=serializers.USER)
    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        return Json(user_response(find_user(id)))

    @ApiOperation("Create or update a user", ADMINISTRATORS_ONLY, reply=serializers.USER, body=serializers.NEW_USER)
    def put(self, request: ConductorRequest, id: str) -> HttpResponse:
        document = request_body.read_object(request)
        settings = users.UserSettings(
            name=serializers.read_text(document, "name", max_length=150),
            roles=serializers.read_texts(document, "roles"),
            groups=serializers.read_texts(document, "groups"),
            contact=serializers.read_text_map(document, "contactInformation"),
        )
        return Json(user_response(users.upsert_user(id, settings, request.actor.name)))

    @ApiOperation("Delete a user", ADMINISTRATORS_ONLY)
    def delete(self, request: ConductorRequest, id: str) -> None:
        users.delete_user(id, request.actor.name)


class UserPermissions(ConductorView):
    """GET /api/users/{userId}/permissions: list the accesses that are granted to a user directly or by a group."""

    @ApiOperation("List the permissions of a user", can_view_users, reply=serializers.GRANTED)
    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        user = find_user(id)
        grants = Grant.objects.filter(user=user) | Grant.objects.filter(group__in=dict(effective_groups(user.pk)))
        return Json(serializers.granted_access_document(grants.values_list("target_type", "target_id", "access")))


class PermissionCheck(ConductorView):
    """GET /api/users/{userId}/checkPermissions: return the accesses of a user to one target, from all sources."""

    @ApiOperation(
        "Check the permissions of a user for a target",
        can_view_users,
        reply=MapOf(read_boolean),
        query={"type!": str, "id!": str},
    )
    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        target = {name: request.query.required(name) for name in ("type", "id")}
        kind, name = serializers.read_target(target)
        permissions = read_permission_set(find_user(id).pk)
        return Json({access: permissions.allows(access, kind, name) for access in ACCESSES})


def user_response(user: User) -> dict:
    """Return the document of a user, read again from the database."""
    return serializers.user_document(
        serializers.prefetch_groups(get_user_model()._default_manager.filter(pk=user.pk)).get()
    )


class Groups(ConductorView):
    """GET /api/groups: list all groups."""

    @ApiOperation("List all groups", can_view_users, reply=ArrayOf(serializers.GROUP))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(
            [serializers.group_document(row) for row in list_groups().select_related("profile").order_by("name")]
        )


class GroupOne(ConductorView):
    """GET, PUT, DELETE /api/groups/{id}: get, save or delete a group. PUT creates a group that does not exist."""

    @ApiOperation("Get a group", can_view_users, reply=serializers.GROUP)
    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        return Json(serializers.group_document(find_group(id)))

    @ApiOperation("Create or update a group", ADMINISTRATORS_ONLY, reply=serializers.GROUP, body=serializers.NEW_GROUP)
    def put(self, request: ConductorRequest, id: str) -> HttpResponse:
        document = request_body.read_object(request)
        settings = users.GroupSettings(
            description=serializers.read_text(document, "description", max_length=10_000, default=""),
            roles=serializers.read_texts(document, "roles"),
            default_access=serializers.read_default_access(document),
            contact=serializers.read_text_map(document, "contactInformation"),
        )
        users.upsert_group(id, settings, request.actor.name)
        return Json(serializers.group_document(find_group(id)))

    @ApiOperation("Delete a group", ADMINISTRATORS_ONLY)
    def delete(self, request: ConductorRequest, id: str) -> None:
        users.delete_group(id, request.actor.name)


class GroupPermissions(ConductorView):
    """GET /api/groups/{groupId}/permissions: list the accesses that are granted to a group."""

    @ApiOperation("List the permissions of a group", can_view_users, reply=serializers.GRANTED)
    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        grants = Grant.objects.filter(group=find_group(id))
        return Json(serializers.granted_access_document(grants.values_list("target_type", "target_id", "access")))


class GroupUsers(ConductorView):
    """GET, POST, DELETE /api/groups/{groupId}/users: list, add or remove members of a group."""

    @ApiOperation("List the users in a group", can_view_users, reply=ArrayOf(serializers.USER))
    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        members = serializers.prefetch_groups(
            get_user_model()._default_manager.filter(groups=find_group(id)).order_by(name_field())
        )
        return Json([serializers.user_document(row) for row in members])

    @ApiOperation("Add users to a group", ADMINISTRATORS_ONLY, body=texts)
    def post(self, request: ConductorRequest, id: str) -> None:
        users.add_users(id, serializers.read_text_list(request_body.read_json(request), "users"), request.actor.name)

    @ApiOperation("Remove users from a group", ADMINISTRATORS_ONLY)
    def delete(self, request: ConductorRequest, id: str) -> None:
        users.remove_users(id, serializers.read_text_list(request_body.read_json(request), "users"), request.actor.name)


class GroupUser(ConductorView):
    """POST, DELETE /api/groups/{groupId}/users/{userId}: add or remove a member."""

    @ApiOperation("Add a user to a group", ADMINISTRATORS_ONLY)
    def post(self, request: ConductorRequest, id: str, user_id: str) -> None:
        users.add_users(id, [user_id], request.actor.name)

    @ApiOperation("Remove a user from a group", ADMINISTRATORS_ONLY)
    def delete(self, request: ConductorRequest, id: str, user_id: str) -> None:
        users.remove_users(id, [user_id], request.actor.name)
