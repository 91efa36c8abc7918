"""Groups, and who is in them."""

from django.contrib.auth.models import User
from django.http import HttpResponse

from ....engine.access import groups
from ....engine.access.subjects import find_group
from ....engine.access.subjects import list_groups as all_groups
from ....models import Grant
from .. import body
from ..replies import Empty, Json
from ..serializers import access as wire
from ..view import ConductorRequest, ConductorView


class Groups(ConductorView):
    """GET /api/groups: all groups."""

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json([wire.group(row) for row in all_groups().select_related("facts").order_by("name")])


class GroupOne(ConductorView):
    """GET, PUT, DELETE /api/groups/{id}: one group; PUT makes one that is not there."""

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        return Json(wire.group(find_group(id)))

    def put(self, request: ConductorRequest, id: str) -> HttpResponse:
        document = body.document(request)
        said = groups.GroupSettings(
            description=wire.text(document, "description", most=10_000, default=""),
            roles=wire.texts(document, "roles"),
            default_access=wire.default_access(document),
            contact=wire.text_map(document, "contactInformation"),
        )
        groups.upsert_group(id, said, request.actor.name)
        return Json(wire.group(find_group(id)))

    def delete(self, request: ConductorRequest, id: str) -> HttpResponse:
        groups.delete_group(id, request.actor.name)
        return Empty()


class GroupPermissions(ConductorView):
    """GET /api/groups/{groupId}/permissions: what was granted to a group."""

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        grants = Grant.objects.filter(group=find_group(id))
        return Json(wire.granted_access(grants.values_list("target_type", "target_id", "access")))


class GroupUsers(ConductorView):
    """GET, POST, DELETE /api/groups/{groupId}/users: who is in a group, several in, several out."""

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        members = wire.with_groups(User.objects.filter(groups=find_group(id)).order_by("username"))
        return Json([wire.user(row) for row in members])

    def post(self, request: ConductorRequest, id: str) -> HttpResponse:
        groups.add_users(id, wire.text_list(body.read(request), "users"), request.actor.name)
        return Empty()

    def delete(self, request: ConductorRequest, id: str) -> HttpResponse:
        groups.remove_users(id, wire.text_list(body.read(request), "users"), request.actor.name)
        return Empty()


class GroupUser(ConductorView):
    """POST, DELETE /api/groups/{groupId}/users/{userId}: one in, one out."""

    def post(self, request: ConductorRequest, id: str, user_id: str) -> HttpResponse:
        groups.add_users(id, [user_id], request.actor.name)
        return Empty()

    def delete(self, request: ConductorRequest, id: str, user_id: str) -> HttpResponse:
        groups.remove_users(id, [user_id], request.actor.name)
        return Empty()
