"""Applications with their keys and roles, permissions, roles, and access tokens."""

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.http import HttpResponse

from ...core.document import fields
from ...core.document.fields import MapOf, ObjectOf
from ...core.errors import Invalid, NotFound
from ...settings import conf
from ...web.api import permissions as targets
from ...web.api import requests as request_body
from ...web.api.operations import ApiOperation, ArrayOf, ArraysByKey, Json
from ...web.api.permissions import (
    ADMINISTRATORS_ONLY,
    ALLOW_ALL,
    RequiresAccess,
    can_update_application,
    can_view_application,
    can_view_users,
    requires,
)
from ...web.api.view import ConductorRequest, ConductorView
from .. import tokens
from ..authentication import Target
from ..commands import applications, users
from ..commands.users import Subject, find_subject
from ..grants import creator_accesses
from ..models import AccessKey, Application, Grant
from ..permissions import APPLICATION, CREATE, DELETE, READ, RIGHT_BY_NAME, SYSTEM_ROLES, role_group
from ..visibility import visible
from . import serializers
from .serializers import access_key_document, application_document, read_text
from .users import user_response

can_create_application = requires(CREATE, APPLICATION, targets.no_target)
can_delete_application = requires(DELETE, APPLICATION, targets.named_in_address(APPLICATION, "id"))


def application_of_key(request: ConductorRequest, url_kwargs: dict[str, str]) -> list[Target]:
    """Return the application of an access key, or a target that no grant matches if there is no such key."""
    ids = AccessKey.objects.filter(pk=url_kwargs["key_id"]).values_list("application_id", flat=True)
    return [{APPLICATION: id} for id in ids] or [{}]


can_view_application_of_key = RequiresAccess(((READ, APPLICATION),), application_of_key, names_targets=False)


class Applications(ConductorView):
    """GET, POST /api/applications: list all applications, or create one."""

    @ApiOperation("List all applications", ALLOW_ALL, reply=ArrayOf(serializers.APPLICATION))
    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = visible(Application.objects.order_by("name", "id"))
        return Json([application_document(row) for row in rows])

    @ApiOperation(
        "Create an application", can_create_application, reply=serializers.APPLICATION, body=serializers.NEW_APPLICATION
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        made = applications.create_application(read_text(request_body.read_object(request), "name"), request.actor.name)
        request.created_targets = [(APPLICATION, made.id)]
        return Json(application_document(made))


class ApplicationOne(ConductorView):
    """GET, PUT, DELETE /api/applications/{id}: get, rename or delete an application."""

    @ApiOperation("Get an application", can_view_application, reply=serializers.APPLICATION)
    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        return Json(application_document(applications.find_application(id)))

    @ApiOperation(
        "Rename an application", can_update_application, reply=serializers.APPLICATION, body=serializers.NEW_APPLICATION
    )
    def put(self, request: ConductorRequest, id: str) -> HttpResponse:
        name = read_text(request_body.read_object(request), "name")
        return Json(application_document(applications.rename_application(id, name, request.actor.name)))

    @ApiOperation("Delete an application", can_delete_application)
    def delete(self, request: ConductorRequest, id: str) -> None:
        applications.delete_application(id, request.actor.name)


class ApplicationOfKey(ConductorView):
    """GET /api/applications/key/{accessKeyId}: get the application of an access key."""

    @ApiOperation("Get the application of an access key", can_view_application_of_key, reply=serializers.APPLICATION)
    def get(self, request: ConductorRequest, key_id: str) -> HttpResponse:
        key = AccessKey.objects.select_related("application").filter(pk=key_id).first()
        if key is None:
            raise NotFound(f"There is no key {key_id}.")
        return Json(application_document(key.application))


class AccessKeys(ConductorView):
    """GET, POST /api/applications/{id}/accessKeys: list the access keys of an application, or create one."""

    @ApiOperation("List the access keys of an application", can_view_application, reply=ArrayOf(serializers.ACCESS_KEY))
    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        keys = applications.find_application(id).keys.order_by("created_at", "id")
        return Json([access_key_document(key) for key in keys])

    @ApiOperation("Create an access key and its secret", can_update_application, reply=serializers.CREATED_KEY)
    def post(self, request: ConductorRequest, id: str) -> HttpResponse:
        key_id, secret = applications.create_key(id, request.actor.name)
        return Json({"id": key_id, "secret": secret})


class AccessKeyOne(ConductorView):
    """DELETE /api/applications/{applicationId}/accessKeys/{keyId}: delete a key."""

    @ApiOperation("Delete an access key", can_update_application)
    def delete(self, request: ConductorRequest, id: str, key_id: str) -> None:
        applications.delete_key(id, key_id, request.actor.name)


class AccessKeyStatus(ConductorView):
    """POST /api/applications/{applicationId}/accessKeys/{keyId}/status: enable or disable an access key."""

    @ApiOperation("Enable or disable an access key", can_update_application, reply=serializers.ACCESS_KEY)
    def post(self, request: ConductorRequest, id: str, key_id: str) -> HttpResponse:
        return Json(access_key_document(applications.toggle_key(id, key_id, request.actor.name)))


class ApplicationRole(ConductorView):
    """POST, DELETE /api/applications/{applicationId}/roles/{role}: assign or remove a role."""

    @ApiOperation("Assign a role to an application", ADMINISTRATORS_ONLY)
    def post(self, request: ConductorRequest, id: str, role: str) -> None:
        applications.add_role(id, role, request.actor.name)

    @ApiOperation("Remove a role from an application", ADMINISTRATORS_ONLY)
    def delete(self, request: ConductorRequest, id: str, role: str) -> None:
        applications.remove_role(id, role, request.actor.name)


class Authorizations(ConductorView):
    """POST, DELETE /api/auth/authorization: grant or revoke permissions for a target."""

    @ApiOperation("Grant permissions for a target", ADMINISTRATORS_ONLY, body=serializers.AUTHORIZATION)
    def post(self, request: ConductorRequest) -> None:
        subject, target_type, target_id, accesses, to = parse_authorization(request_body.read_object(request))
        users.grant(subject, target_type, target_id, accesses, to, request.actor.name)

    @ApiOperation("Revoke permissions for a target", ADMINISTRATORS_ONLY)
    def delete(self, request: ConductorRequest) -> None:
        subject, target_type, target_id, accesses, to = parse_authorization(request_body.read_object(request))
        users.revoke(subject, target_type, target_id, accesses, to, request.actor.name)


def parse_authorization(document: dict) -> tuple[Subject, str, str, list[str], str]:
    """Return the subject, the target and the accesses of a request, and the name of the subject for the audit log."""
    subject, target = (
        serializers.read_object_member(document, "subject"),
        serializers.read_object_member(document, "target"),
    )
    kind, id = serializers.read_text(subject, "type", default="USER"), serializers.read_text(subject, "id")
    accesses = serializers.read_accesses(document.get("access"), "access")
    return find_subject(kind, id), *serializers.read_target(target), accesses, f"{kind} {id}"


class TargetPermissions(ConductorView):
    """GET /api/auth/authorization/{type}/{id}: list the subjects with access to a target, and its creator."""

    @ApiOperation(
        "List the permissions that are granted for a target", can_view_users, reply=ArraysByKey(serializers.REFERENCE)
    )
    def get(self, request: ConductorRequest, kind: str, id: str) -> HttpResponse:
        target_type, target_id = serializers.read_target({"type": kind, "id": id})
        rows = Grant.objects.filter(target_type=target_type, target_id=target_id)
        granted = rows.select_related("user", "group__profile").order_by("id")
        return Json(serializers.subjects_by_access(granted, *creator_accesses(target_type, target_id)))


def all_roles():
    """Return the groups that are roles, with the related rows that their documents need."""
    found = Group.objects.exclude(profile__role=None).order_by("profile__role")
    return found.select_related("profile").prefetch_related("permissions__content_type")


class RoleList(ConductorView):
    """GET, POST /api/roles: list all roles, or create one."""

    @ApiOperation("List all roles", ALLOW_ALL, reply=ArrayOf(serializers.ROLE))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json([serializers.role_document(row) for row in all_roles()])

    @ApiOperation("Create a role", ADMINISTRATORS_ONLY, reply=serializers.ROLE, body=serializers.NEW_ROLE)
    def post(self, request: ConductorRequest) -> HttpResponse:
        document = request_body.read_object(request)
        name = serializers.read_text(document, "name")
        users.create_role(name, serializers.read_texts(document, "permissions") or [], request.actor.name)
        return Json(serializers.role_document(role_group(name)))


class SystemRoles(ConductorView):
    """GET /api/roles/system: get the built-in roles by name."""

    @ApiOperation("List the built-in roles", ALLOW_ALL, reply=MapOf(ObjectOf(serializers.ROLE)))
    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = all_roles().filter(profile__role__in=SYSTEM_ROLES)
        return Json({row.profile.role: serializers.role_document(row) for row in rows})


class CustomRoles(ConductorView):
    """GET /api/roles/custom: list the custom roles."""

    @ApiOperation("List the custom roles", ALLOW_ALL, reply=ArrayOf(serializers.ROLE))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json([serializers.role_document(row) for row in all_roles().exclude(profile__role__in=SYSTEM_ROLES)])


class AvailablePermissions(ConductorView):
    """GET /api/roles/permissions: list the permissions that a role can have."""

    @ApiOperation("List the permissions that a role can contain", ALLOW_ALL, reply=MapOf(MapOf(fields.read_text)))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json({
            name: {"name": name, "access": access, "target": target} for name, (access, target) in RIGHT_BY_NAME.items()
        })  # fmt: skip


class RoleOne(ConductorView):
    """GET, PUT, DELETE /api/roles/{name}: get, update or delete a role."""

    @ApiOperation("Get a role", ALLOW_ALL, reply=serializers.ROLE)
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        return Json(serializers.role_document(role_group(name)))

    @ApiOperation("Update a role", ADMINISTRATORS_ONLY, reply=serializers.ROLE, body=serializers.NEW_ROLE)
    def put(self, request: ConductorRequest, name: str) -> HttpResponse:
        permissions = serializers.read_texts(request_body.read_object(request), "permissions") or []
        users.update_role(name, permissions, request.actor.name)
        return Json(serializers.role_document(role_group(name)))

    @ApiOperation("Delete a role", ADMINISTRATORS_ONLY)
    def delete(self, request: ConductorRequest, name: str) -> None:
        users.delete_role(name, request.actor.name)


class Tokens(ConductorView):
    """POST /api/token: create an access token for the key and secret of an application."""

    needs_login = False

    @ApiOperation("Create an access token for a key", reply=serializers.TOKEN, body=serializers.CREDENTIALS)
    def post(self, request: ConductorRequest) -> HttpResponse:
        if conf.api_access == "open":
            # Clients take this status for a server without authentication and continue without a token.
            raise NotFound("This server does not require tokens.")
        key_id, secret = parse_credentials(request_body.read_object(request))
        key = tokens.verify_key(key_id, secret)
        return Json({"token": tokens.issue_token(key.id, key.application.name)})


def parse_credentials(document: dict) -> tuple[str, str]:
    """Return the key id and the secret of a request."""
    key_id, secret = document.get("keyId"), document.get("keySecret")
    if not isinstance(key_id, str) or not isinstance(secret, str):
        raise Invalid("keyId and keySecret are required and must be texts.")
    return key_id.replace("\0", ""), secret


class TokenUser(ConductorView):
    """GET /api/token/userInfo: get the user of the token, with roles and groups."""

    @ApiOperation("Get the user of the access token", ALLOW_ALL, reply=serializers.USER)
    def get(self, request: ConductorRequest) -> HttpResponse:
        actor = request.actor
        if actor.user_id is None:
            roles = [{"name": "ADMIN", "permissions": []}]
            return Json({"id": actor.name, "name": actor.name, "roles": roles, "groups": [], "applicationUser": False})
        return Json(user_response(get_user_model()._default_manager.get(pk=actor.user_id)))
