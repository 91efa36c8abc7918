"""Secrets, and variables that definitions read as `${workflow.env.NAME}`. GET of one returns its value."""

from functools import partial

from django.http import HttpResponse

from ...core.document.fields import MapOf, OrNull, read_boolean, read_text, texts
from ...core.errors import Forbidden
from ...definitions.api.tags import ObjectTags, tag_operations
from ...web.api import permissions as targets
from ...web.api import requests as request_body
from ...web.api.operations import PLAIN_TEXT, ApiOperation, ArrayOf, Json, PlainText
from ...web.api.permissions import ALLOW_ALL, RequiresDefinitionAccess, requires
from ...web.api.view import ConductorRequest, ConductorView
from ..commands import secrets
from ..models import Secret, Variable
from ..permissions import DELETE, READ, SECRET, UPDATE, VARIABLE
from ..secrets import clear_secret_cache
from ..visibility import visible
from . import serializers
from .serializers import decode_text, wire_secret, wire_secret_with_tags

can_view_secret = requires(READ, SECRET, targets.named_in_address(SECRET, "key"))
can_save_secret = RequiresDefinitionAccess(SECRET, targets.named_in_address(SECRET, "key"))
can_delete_secret = requires(DELETE, SECRET, targets.named_in_address(SECRET, "key"))
can_update_secret = requires(UPDATE, SECRET, targets.named_in_address(SECRET, "key"))
can_view_variable = requires(READ, VARIABLE, targets.named_in_address(VARIABLE, "key"))
can_save_variable = RequiresDefinitionAccess(VARIABLE, targets.named_in_address(VARIABLE, "key"))
can_delete_variable = requires(DELETE, VARIABLE, targets.named_in_address(VARIABLE, "key"))
can_update_variable = requires(UPDATE, VARIABLE, targets.named_in_address(VARIABLE, "key"))


FALSE_READS_AS_TRUE = ("node", "undici")
"""User agents of the JavaScript SDK's clients. They take any reply except null for an existing secret."""


class Secrets(ConductorView):
    """GET, POST /api/secrets: list the names of all secrets. Each SDK uses one of the two methods."""

    @ApiOperation("List the names of secrets", ALLOW_ALL, reply=texts)
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json([name for name in secrets.secret_names() if request.actor.permissions.allows(READ, SECRET, name)])

    @ApiOperation("List the names of secrets with POST", ALLOW_ALL, reply=texts)
    def post(self, request: ConductorRequest) -> HttpResponse:
        return self.get(request)


class SecretsInDetail(ConductorView):
    """GET /api/secrets/v2: list the names and timestamps of the stored secrets."""

    @ApiOperation("List secrets with their timestamps", ALLOW_ALL, reply=ArrayOf(serializers.SECRET))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json([wire_secret(row) for row in visible(list_secrets())])


class SecretsWithTags(ConductorView):
    """GET /api/secrets-v2: list the names and tags of the stored secrets."""

    @ApiOperation("List secrets with their tags", ALLOW_ALL, reply=ArrayOf(serializers.SECRET_WITH_TAGS))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json([wire_secret_with_tags(row) for row in visible(list_secrets())])


def list_secrets():
    """Return the stored secrets by name, without their values."""
    return Secret.objects.defer("sealed").order_by("name")


class SecretOne(ConductorView):
    """GET, PUT, DELETE /api/secrets/{key}: get, set or delete a secret."""

    @ApiOperation("Get a secret", can_view_secret, reply=PLAIN_TEXT)
    def get(self, request: ConductorRequest, key: str) -> HttpResponse:
        if request.actor.is_person:
            raise Forbidden(
                "People cannot read the value of a secret, whatever their role. Save a new value instead. "
                "An application with READ on the secret can read it.",
                code="FORBIDDEN",
            )
        return PlainText(secrets.read_secret(key, request.actor.name))

    @ApiOperation("Create or update a secret", can_save_secret, body=PLAIN_TEXT)
    def put(self, request: ConductorRequest, key: str) -> None:
        secrets.put_secret(key, decode_text(request_body.read_text(request)), request.actor.name)

    @ApiOperation("Delete a secret", can_delete_secret)
    def delete(self, request: ConductorRequest, key: str) -> None:
        secrets.delete_secret(key, request.actor.name)


class SecretExists(ConductorView):
    """GET /api/secrets/{key}/exists: return whether a secret exists."""

    @ApiOperation("Check whether a secret exists", can_view_secret, reply=OrNull(read_boolean))
    def get(self, request: ConductorRequest, key: str) -> HttpResponse:
        exists = secrets.secret_exists(key)
        agent = request.META.get("HTTP_USER_AGENT", "").lower()
        return Json(None if not exists and agent.startswith(FALSE_READS_AS_TRUE) else exists)


class SecretTags(ObjectTags):
    """GET, PUT, DELETE /api/secrets/{key}/tags: list, replace or remove tags."""

    operations = tag_operations("a secret", can_view_secret, can_update_secret)

    find_tags = staticmethod(partial(secrets.tags_of, Secret))
    change_tags = staticmethod(partial(secrets.change_tags, Secret))


class SecretCaches(ConductorView):
    """GET /api/secrets/clearLocalCache, /api/secrets/clearRedisCache: clear the cache of secrets; there is one."""

    @ApiOperation("Clear the cache of secrets", ALLOW_ALL, reply=MapOf(read_text), changes_state=True)
    def get(self, request: ConductorRequest) -> HttpResponse:
        clear_secret_cache()
        return Json({"status": "done"})


class EnvironmentVariables(ConductorView):
    """GET /api/environment: list all variables with their values."""

    @ApiOperation("List environment variables", ALLOW_ALL, reply=ArrayOf(serializers.VARIABLE))
    def get(self, request: ConductorRequest) -> HttpResponse:
        variables = (
            (name, value) for name, value in secrets.list_variables().items() if can_read_variable(request, name)
        )
        return Json([{"name": name, "value": value} for name, value in variables])


def can_read_variable(request: ConductorRequest, name: str) -> bool:
    return request.actor.permissions.allows(READ, VARIABLE, name)


class EnvironmentVariable(ConductorView):
    """GET, PUT, DELETE /api/environment/{key}: get, set or delete a variable.

    The value of an unknown variable is empty.
    """

    @ApiOperation("Get an environment variable", can_view_variable, reply=PLAIN_TEXT)
    def get(self, request: ConductorRequest, key: str) -> HttpResponse:
        return PlainText(secrets.list_variables().get(key, ""))

    @ApiOperation("Create or update an environment variable", can_save_variable, body=PLAIN_TEXT)
    def put(self, request: ConductorRequest, key: str) -> None:
        secrets.put_variable(key, decode_text(request_body.read_text(request)), request.actor.name)

    @ApiOperation("Delete an environment variable; replies with its value", can_delete_variable, reply=PLAIN_TEXT)
    def delete(self, request: ConductorRequest, key: str) -> HttpResponse:
        value = secrets.list_variables().get(key, "") if can_read_variable(request, key) else ""
        secrets.delete_variable(key, request.actor.name)
        return PlainText(value)


class EnvironmentTags(ObjectTags):
    """GET, PUT, DELETE /api/environment/{key}/tags: list, replace or remove tags."""

    operations = tag_operations("an environment variable", can_view_variable, can_update_variable)

    find_tags = staticmethod(partial(secrets.tags_of, Variable))
    change_tags = staticmethod(partial(secrets.change_tags, Variable))
