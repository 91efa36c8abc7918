"""Views of groups and their members."""

from django.contrib.auth.models import User
from django.http import HttpResponse

from ....core.document.checks.values import texts
from ....engine.access import user_groups
from ....engine.access.subjects import find_group
from ....engine.access.subjects import list_groups as all_groups
from ....models import Grant
from .. import request_body
from ..api_operation import EMPTY_REPLY, ApiOperation, ArrayOf
from ..openapi import tables as shapes
from ..permission_rules import ADMINISTRATORS_ONLY
from ..permissions import can_view_users
from ..replies import EmptyOk, Json
from ..view import ConductorRequest, ConductorView
from . import access_serializers as wire


class Groups(ConductorView):
    """GET /api/groups: list all groups."""

    operations = {
        "get": ApiOperation("List all groups", permission=can_view_users, reply=ArrayOf(shapes.GROUP)),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json([wire.group_document(row) for row in all_groups().select_related("profile").order_by("name")])


class GroupOne(ConductorView):
    """GET, PUT, DELETE /api/groups/{id}: get, save or delete a group. PUT creates a group that does not exist."""

    operations = {
        "get": ApiOperation("Get a group", permission=can_view_users, reply=shapes.GROUP),
        "put": ApiOperation(
            "Create or update a group", permission=ADMINISTRATORS_ONLY, reply=shapes.GROUP, body=shapes.NEW_GROUP
        ),
        "delete": ApiOperation("Delete a group", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY),
    }

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        return Json(wire.group_document(find_group(id)))

    def put(self, request: ConductorRequest, id: str) -> HttpResponse:
        document = request_body.read_object(request)
        settings = user_groups.GroupSettings(
            description=wire.read_text(document, "description", max_length=10_000, default=""),
            roles=wire.read_texts(document, "roles"),
            default_access=wire.read_default_access(document),
            contact=wire.read_text_map(document, "contactInformation"),
        )
        user_groups.upsert_group(id, settings, request.actor.name)
        return Json(wire.group_document(find_group(id)))

    def delete(self, request: ConductorRequest, id: str) -> HttpResponse:
        user_groups.delete_group(id, request.actor.name)
        return EmptyOk()


class GroupPermissions(ConductorView):
    """GET /api/groups/{groupId}/permissions: list the accesses that are granted to a group."""

    operations = {
        "get": ApiOperation("List the permissions of a group", permission=can_view_users, reply=shapes.GRANTED),
    }

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        grants = Grant.objects.filter(group=find_group(id))
        return Json(wire.granted_access_document(grants.values_list("target_type", "target_id", "access")))


class GroupUsers(ConductorView):
    """GET, POST, DELETE /api/groups/{groupId}/users: list, add or remove members of a group."""

    operations = {
        "get": ApiOperation("List the users in a group", permission=can_view_users, reply=ArrayOf(shapes.USER)),
        "post": ApiOperation("Add users to a group", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY, body=texts),
        "delete": ApiOperation("Remove users from a group", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY),
    }

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        members = wire.prefetch_groups(User.objects.filter(groups=find_group(id)).order_by("username"))
        return Json([wire.user_document(row) for row in members])

    def post(self, request: ConductorRequest, id: str) -> HttpResponse:
        user_groups.add_users(id, wire.read_text_list(request_body.read_json(request), "users"), request.actor.name)
        return EmptyOk()

    def delete(self, request: ConductorRequest, id: str) -> HttpResponse:
        user_groups.remove_users(id, wire.read_text_list(request_body.read_json(request), "users"), request.actor.name)
        return EmptyOk()


class GroupUser(ConductorView):
    """POST, DELETE /api/groups/{groupId}/users/{userId}: add or remove a member."""

    operations = {
        "post": ApiOperation("Add a user to a group", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY),
        "delete": ApiOperation("Remove a user from a group", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY),
    }

    def post(self, request: ConductorRequest, id: str, user_id: str) -> HttpResponse:
        user_groups.add_users(id, [user_id], request.actor.name)
        return EmptyOk()

    def delete(self, request: ConductorRequest, id: str, user_id: str) -> HttpResponse:
        user_groups.remove_users(id, [user_id], request.actor.name)
        return EmptyOk()
