"""Applications, their keys and their roles."""

from django.http import HttpResponse

from ....access.access_types import APPLICATION
from ....access.permissions import filter_readable
from ....core.errors import NotFound
from ....engine.access import applications
from ....models import AccessKey, Application
from .. import request_body
from ..replies import EmptyOk, Json
from ..serializers.access import access_key_document, application_document, read_text
from ..view import ConductorRequest, ConductorView


class Applications(ConductorView):
    """GET, POST /api/applications: all applications, a new one."""

    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = filter_readable(request.actor, Application.objects.order_by("name", "id"), APPLICATION, "id")
        return Json([application_document(row) for row in rows])

    def post(self, request: ConductorRequest) -> HttpResponse:
        made = applications.create_application(read_text(request_body.read_object(request), "name"), request.actor.name)
        request.created_targets = [(APPLICATION, made.id)]
        return Json(application_document(made))


class ApplicationOne(ConductorView):
    """GET, PUT, DELETE /api/applications/{id}: one application."""

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        return Json(application_document(applications.find_application(id)))

    def put(self, request: ConductorRequest, id: str) -> HttpResponse:
        name = read_text(request_body.read_object(request), "name")
        return Json(application_document(applications.rename_application(id, name, request.actor.name)))

    def delete(self, request: ConductorRequest, id: str) -> HttpResponse:
        applications.delete_application(id, request.actor.name)
        return EmptyOk()


class ApplicationOfKey(ConductorView):
    """GET /api/applications/key/{accessKeyId}: the application that a key belongs to."""

    def get(self, request: ConductorRequest, key_id: str) -> HttpResponse:
        key = AccessKey.objects.select_related("application").filter(pk=key_id).first()
        if key is None:
            raise NotFound(f"There is no key {key_id}.")
        return Json(application_document(key.application))


class AccessKeys(ConductorView):
    """GET, POST /api/applications/{id}/accessKeys: the keys of an application, a new one with its secret."""

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        keys = applications.find_application(id).keys.order_by("created_at", "id")
        return Json([access_key_document(key) for key in keys])

    def post(self, request: ConductorRequest, id: str) -> HttpResponse:
        key_id, secret = applications.create_key(id, request.actor.name)
        return Json({"id": key_id, "secret": secret})


class AccessKeyOne(ConductorView):
    """DELETE /api/applications/{applicationId}/accessKeys/{keyId}: delete a key."""

    def delete(self, request: ConductorRequest, id: str, key_id: str) -> HttpResponse:
        applications.delete_key(id, key_id, request.actor.name)
        return EmptyOk()


class AccessKeyStatus(ConductorView):
    """POST /api/applications/{applicationId}/accessKeys/{keyId}/status: withdraw a key, or let it be used again."""

    def post(self, request: ConductorRequest, id: str, key_id: str) -> HttpResponse:
        return Json(access_key_document(applications.toggle_key(id, key_id, request.actor.name)))


class ApplicationRole(ConductorView):
    """POST, DELETE /api/applications/{applicationId}/roles/{role}: give a role, take it."""

    def post(self, request: ConductorRequest, id: str, role: str) -> HttpResponse:
        applications.add_role(id, role, request.actor.name)
        return EmptyOk()

    def delete(self, request: ConductorRequest, id: str, role: str) -> HttpResponse:
        applications.remove_role(id, role, request.actor.name)
        return EmptyOk()
