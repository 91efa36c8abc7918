"""Views of permissions and roles."""

from django.contrib.auth.models import Group
from django.http import HttpResponse

from ....access.access_types import RIGHT_BY_NAME, SYSTEM_ROLES
from ....access.creator_access import creator_accesses
from ....access.roles import role_group
from ....core.document.checks.document_fields import ObjectOf
from ....core.document.checks.values import MapOf, read_text
from ....engine.access import grants, roles
from ....engine.access.subjects import find_subject
from ....models import Grant
from .. import request_body
from ..api_operation import EMPTY_REPLY, ApiOperation, ArrayOf, ArraysByKey
from ..openapi import tables as shapes
from ..permission_rules import ADMINISTRATORS_ONLY, ALLOW_ALL
from ..permissions import can_view_users
from ..replies import EmptyOk, Json
from ..view import ConductorRequest, ConductorView
from . import access_serializers as wire


class Authorizations(ConductorView):
    """POST, DELETE /api/auth/authorization: grant or revoke permissions for a target."""

    operations = {
        "post": ApiOperation(
            "Grant permissions for a target",
            permission=ADMINISTRATORS_ONLY,
            reply=EMPTY_REPLY,
            body=shapes.AUTHORIZATION,
        ),
        "delete": ApiOperation("Revoke permissions for a target", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY),
    }

    def post(self, request: ConductorRequest) -> HttpResponse:
        grants.grant(*parse_authorization(request_body.read_object(request)), by=request.actor.name)
        return EmptyOk()

    def delete(self, request: ConductorRequest) -> HttpResponse:
        grants.revoke(*parse_authorization(request_body.read_object(request)), by=request.actor.name)
        return EmptyOk()


def parse_authorization(document: dict) -> tuple:
    """Return the subject, the target and the accesses of a request, and the name of the subject for the audit log."""
    subject, target = wire.read_object_member(document, "subject"), wire.read_object_member(document, "target")
    kind, id = wire.read_text(subject, "type", default="USER"), wire.read_text(subject, "id")
    accesses = wire.read_accesses(document.get("access"), "access")
    return find_subject(kind, id), *wire.read_target(target), accesses, f"{kind} {id}"


class TargetPermissions(ConductorView):
    """GET /api/auth/authorization/{type}/{id}: list the subjects with access to a target, and its creator."""

    operations = {
        "get": ApiOperation(
            "List the permissions that are granted for a target",
            permission=can_view_users,
            reply=ArraysByKey(shapes.REFERENCE),
        ),
    }

    def get(self, request: ConductorRequest, kind: str, id: str) -> HttpResponse:
        target_type, target_id = wire.read_target({"type": kind, "id": id})
        rows = Grant.objects.filter(target_type=target_type, target_id=target_id)
        granted = rows.select_related("user", "group__profile").order_by("id")
        return Json(wire.subjects_by_access(granted, *creator_accesses(target_type, target_id)))


def all_roles():
    """Return the groups that are roles, with the related rows that their documents need."""
    found = Group.objects.exclude(profile__role=None).order_by("profile__role")
    return found.select_related("profile").prefetch_related("permissions__content_type")


class RoleList(ConductorView):
    """GET, POST /api/roles: list all roles, or create one."""

    operations = {
        "get": ApiOperation("List all roles", permission=ALLOW_ALL, reply=ArrayOf(shapes.ROLE)),
        "post": ApiOperation("Create a role", permission=ADMINISTRATORS_ONLY, reply=shapes.ROLE, body=shapes.NEW_ROLE),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json([wire.role_document(row) for row in all_roles()])

    def post(self, request: ConductorRequest) -> HttpResponse:
        document = request_body.read_object(request)
        name = wire.read_text(document, "name")
        roles.create_role(name, wire.read_texts(document, "permissions") or [], request.actor.name)
        return Json(wire.role_document(role_group(name)))


class SystemRoles(ConductorView):
    """GET /api/roles/system: get the built-in roles by name."""

    operations = {
        "get": ApiOperation("List the built-in roles", permission=ALLOW_ALL, reply=MapOf(ObjectOf(shapes.ROLE))),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = all_roles().filter(profile__role__in=SYSTEM_ROLES)
        return Json({row.profile.role: wire.role_document(row) for row in rows})


class CustomRoles(ConductorView):
    """GET /api/roles/custom: list the custom roles."""

    operations = {
        "get": ApiOperation("List the custom roles", permission=ALLOW_ALL, reply=ArrayOf(shapes.ROLE)),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json([wire.role_document(row) for row in all_roles().exclude(profile__role__in=SYSTEM_ROLES)])


class AvailablePermissions(ConductorView):
    """GET /api/roles/permissions: list the permissions that a role can have."""

    operations = {
        "get": ApiOperation(
            "List the permissions that a role can contain", permission=ALLOW_ALL, reply=MapOf(MapOf(read_text))
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json({
            name: {"name": name, "access": access, "target": target} for name, (access, target) in RIGHT_BY_NAME.items()
        })  # fmt: skip


class RoleOne(ConductorView):
    """GET, PUT, DELETE /api/roles/{name}: get, update or delete a role."""

    operations = {
        "get": ApiOperation("Get a role", permission=ALLOW_ALL, reply=shapes.ROLE),
        "put": ApiOperation("Update a role", permission=ADMINISTRATORS_ONLY, reply=shapes.ROLE, body=shapes.NEW_ROLE),
        "delete": ApiOperation("Delete a role", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY),
    }

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        return Json(wire.role_document(role_group(name)))

    def put(self, request: ConductorRequest, name: str) -> HttpResponse:
        permissions = wire.read_texts(request_body.read_object(request), "permissions") or []
        roles.update_role(name, permissions, request.actor.name)
        return Json(wire.role_document(role_group(name)))

    def delete(self, request: ConductorRequest, name: str) -> HttpResponse:
        roles.delete_role(name, request.actor.name)
        return EmptyOk()
