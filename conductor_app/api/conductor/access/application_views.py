"""Applications, their keys and their roles."""

from django.http import HttpResponse

from ....access.access_types import APPLICATION
from ....access.permissions import filter_readable
from ....core.errors import NotFound
from ....engine.access import applications
from ....models import AccessKey, Application
from .. import request_body
from ..api_operation import EMPTY_REPLY, ApiOperation, ArrayOf
from ..openapi import tables as shapes
from ..permission_rules import ADMINISTRATORS_ONLY, ALLOW_ALL
from ..permissions import (
    can_create_application,
    can_delete_application,
    can_update_application,
    can_view_application,
    can_view_application_of_key,
)
from ..replies import EmptyOk, Json
from ..view import ConductorRequest, ConductorView
from .access_serializers import access_key_document, application_document, read_text


class Applications(ConductorView):
    """GET, POST /api/applications: list all applications, or create one."""

    operations = {
        "get": ApiOperation("List all applications", permission=ALLOW_ALL, reply=ArrayOf(shapes.APPLICATION)),
        "post": ApiOperation(
            "Create an application",
            permission=can_create_application,
            reply=shapes.APPLICATION,
            body=shapes.NEW_APPLICATION,
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = filter_readable(request.actor, Application.objects.order_by("name", "id"), APPLICATION, "id")
        return Json([application_document(row) for row in rows])

    def post(self, request: ConductorRequest) -> HttpResponse:
        made = applications.create_application(read_text(request_body.read_object(request), "name"), request.actor.name)
        request.created_targets = [(APPLICATION, made.id)]
        return Json(application_document(made))


class ApplicationOne(ConductorView):
    """GET, PUT, DELETE /api/applications/{id}: get, rename or delete an application."""

    operations = {
        "get": ApiOperation("Get an application", permission=can_view_application, reply=shapes.APPLICATION),
        "put": ApiOperation(
            "Rename an application",
            permission=can_update_application,
            reply=shapes.APPLICATION,
            body=shapes.NEW_APPLICATION,
        ),
        "delete": ApiOperation("Delete an application", permission=can_delete_application, reply=EMPTY_REPLY),
    }

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        return Json(application_document(applications.find_application(id)))

    def put(self, request: ConductorRequest, id: str) -> HttpResponse:
        name = read_text(request_body.read_object(request), "name")
        return Json(application_document(applications.rename_application(id, name, request.actor.name)))

    def delete(self, request: ConductorRequest, id: str) -> HttpResponse:
        applications.delete_application(id, request.actor.name)
        return EmptyOk()


class ApplicationOfKey(ConductorView):
    """GET /api/applications/key/{accessKeyId}: get the application of an access key."""

    operations = {
        "get": ApiOperation(
            "Get the application of an access key", permission=can_view_application_of_key, reply=shapes.APPLICATION
        ),
    }

    def get(self, request: ConductorRequest, key_id: str) -> HttpResponse:
        key = AccessKey.objects.select_related("application").filter(pk=key_id).first()
        if key is None:
            raise NotFound(f"There is no key {key_id}.")
        return Json(application_document(key.application))


class AccessKeys(ConductorView):
    """GET, POST /api/applications/{id}/accessKeys: list the access keys of an application, or create one."""

    operations = {
        "get": ApiOperation(
            "List the access keys of an application", permission=can_view_application, reply=ArrayOf(shapes.ACCESS_KEY)
        ),
        "post": ApiOperation(
            "Create an access key and its secret", permission=can_update_application, reply=shapes.CREATED_KEY
        ),
    }

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        keys = applications.find_application(id).keys.order_by("created_at", "id")
        return Json([access_key_document(key) for key in keys])

    def post(self, request: ConductorRequest, id: str) -> HttpResponse:
        key_id, secret = applications.create_key(id, request.actor.name)
        return Json({"id": key_id, "secret": secret})


class AccessKeyOne(ConductorView):
    """DELETE /api/applications/{applicationId}/accessKeys/{keyId}: delete a key."""

    operations = {
        "delete": ApiOperation("Delete an access key", permission=can_update_application, reply=EMPTY_REPLY),
    }

    def delete(self, request: ConductorRequest, id: str, key_id: str) -> HttpResponse:
        applications.delete_key(id, key_id, request.actor.name)
        return EmptyOk()


class AccessKeyStatus(ConductorView):
    """POST /api/applications/{applicationId}/accessKeys/{keyId}/status: enable or disable an access key."""

    operations = {
        "post": ApiOperation(
            "Enable or disable an access key", permission=can_update_application, reply=shapes.ACCESS_KEY
        ),
    }

    def post(self, request: ConductorRequest, id: str, key_id: str) -> HttpResponse:
        return Json(access_key_document(applications.toggle_key(id, key_id, request.actor.name)))


class ApplicationRole(ConductorView):
    """POST, DELETE /api/applications/{applicationId}/roles/{role}: assign or remove a role."""

    operations = {
        "post": ApiOperation("Assign a role to an application", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY),
        "delete": ApiOperation("Remove a role from an application", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY),
    }

    def post(self, request: ConductorRequest, id: str, role: str) -> HttpResponse:
        applications.add_role(id, role, request.actor.name)
        return EmptyOk()

    def delete(self, request: ConductorRequest, id: str, role: str) -> HttpResponse:
        applications.remove_role(id, role, request.actor.name)
        return EmptyOk()
