"""Views of users and their permissions."""

from django.contrib.auth.models import User
from django.http import HttpResponse

from ....access.access_keys import APPLICATION_USER_PREFIX
from ....access.access_types import ACCESSES
from ....access.permission_cache import effective_groups, read_permission_set
from ....core.document.checks.values import MapOf, read_boolean
from ....engine.access import users
from ....engine.access.subjects import find_user
from ....models import Grant
from .. import request_body
from ..api_operation import EMPTY_REPLY, ApiOperation, ArrayOf
from ..openapi import tables as shapes
from ..permission_rules import ADMINISTRATORS_ONLY
from ..permissions import can_view_users
from ..replies import EmptyOk, Json
from ..view import ConductorRequest, ConductorView
from . import access_serializers as wire


class Users(ConductorView):
    """GET /api/users: list all users, with those of applications if requested."""

    operations = {
        "get": ApiOperation(
            "List all users", permission=can_view_users, reply=ArrayOf(shapes.USER), query={"apps": bool}
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = User.objects.order_by("username")
        if not request.query.flag("apps", False):
            rows = rows.exclude(username__startswith=APPLICATION_USER_PREFIX)
        return Json([wire.user_document(row) for row in wire.prefetch_groups(rows)])


class UserOne(ConductorView):
    """GET, PUT, DELETE /api/users/{id}: get, save or delete a user. PUT creates a user who does not exist."""

    operations = {
        "get": ApiOperation("Get a user", permission=can_view_users, reply=shapes.USER),
        "put": ApiOperation(
            "Create or update a user", permission=ADMINISTRATORS_ONLY, reply=shapes.USER, body=shapes.NEW_USER
        ),
        "delete": ApiOperation("Delete a user", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY),
    }

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        return Json(user_response(find_user(id)))

    def put(self, request: ConductorRequest, id: str) -> HttpResponse:
        document = request_body.read_object(request)
        settings = users.UserSettings(
            name=wire.read_text(document, "name", max_length=150),
            roles=wire.read_texts(document, "roles"),
            groups=wire.read_texts(document, "groups"),
            contact=wire.read_text_map(document, "contactInformation"),
        )
        return Json(user_response(users.upsert_user(id, settings, request.actor.name)))

    def delete(self, request: ConductorRequest, id: str) -> HttpResponse:
        users.delete_user(id, request.actor.name)
        return EmptyOk()


class UserPermissions(ConductorView):
    """GET /api/users/{userId}/permissions: list the accesses that are granted to a user directly or by a group."""

    operations = {
        "get": ApiOperation("List the permissions of a user", permission=can_view_users, reply=shapes.GRANTED),
    }

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        user = find_user(id)
        grants = Grant.objects.filter(user=user) | Grant.objects.filter(group__in=dict(effective_groups(user.pk)))
        return Json(wire.granted_access_document(grants.values_list("target_type", "target_id", "access")))


class PermissionCheck(ConductorView):
    """GET /api/users/{userId}/checkPermissions: return the accesses of a user to one target, from all sources."""

    operations = {
        "get": ApiOperation(
            "Check the permissions of a user for a target",
            permission=can_view_users,
            reply=MapOf(read_boolean),
            query={"type!": str, "id!": str},
        ),
    }

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        target = {name: request.query.required(name) for name in ("type", "id")}
        kind, name = wire.read_target(target)
        permissions = read_permission_set(find_user(id).pk)
        return Json({access: permissions.allows(access, kind, name) for access in ACCESSES})


def user_response(user: User) -> dict:
    """Return the document of a user, read again from the database."""
    return wire.user_document(wire.prefetch_groups(User.objects.filter(pk=user.pk)).get())
