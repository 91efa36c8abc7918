"""Views of secrets. GET of one secret returns its value."""

from functools import partial

from django.http import HttpResponse

from ....access.access_types import READ, SECRET
from ....access.permissions import filter_readable
from ....access.secret_cache import clear_cache
from ....core.document.checks.values import MapOf, OrNull, read_boolean, read_text, texts
from ....engine.access import secrets_and_variables
from ....models import Secret
from .. import request_body
from ..api_operation import EMPTY_REPLY, PLAIN_TEXT, ApiOperation, ArrayOf
from ..definitions.tag_serializers import TAG
from ..definitions.tag_views import ObjectTags
from ..openapi import tables as shapes
from ..permission_rules import ALLOW_ALL
from ..permissions import can_delete_secret, can_save_secret, can_update_secret, can_view_secret
from ..replies import EmptyOk, Json, PlainText
from ..view import ConductorRequest, ConductorView
from .secret_serializers import decode_text, wire_secret, wire_secret_with_tags

FALSE_READS_AS_TRUE = ("node", "undici")
"""User agents of the JavaScript SDK's clients. They take any reply except null for an existing secret."""


class Secrets(ConductorView):
    """GET, POST /api/secrets: list the names of all secrets. Each SDK uses one of the two methods."""

    operations = {
        "get": ApiOperation("List the names of secrets", permission=ALLOW_ALL, reply=texts),
        "post": ApiOperation("List the names of secrets with POST", permission=ALLOW_ALL, reply=texts),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(
            [
                name
                for name in secrets_and_variables.secret_names()
                if request.actor.permissions.allows(READ, SECRET, name)
            ]
        )

    def post(self, request: ConductorRequest) -> HttpResponse:
        return self.get(request)


class SecretsInDetail(ConductorView):
    """GET /api/secrets/v2: list the names and timestamps of the stored secrets."""

    operations = {
        "get": ApiOperation("List secrets with their timestamps", permission=ALLOW_ALL, reply=ArrayOf(shapes.SECRET)),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json([wire_secret(row) for row in filter_readable(request.actor, list_secrets(), SECRET)])


class SecretsWithTags(ConductorView):
    """GET /api/secrets-v2: list the names and tags of the stored secrets."""

    operations = {
        "get": ApiOperation(
            "List secrets with their tags", permission=ALLOW_ALL, reply=ArrayOf(shapes.SECRET_WITH_TAGS)
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json([wire_secret_with_tags(row) for row in filter_readable(request.actor, list_secrets(), SECRET)])


def list_secrets():
    """Return the stored secrets by name, without their values."""
    return Secret.objects.defer("sealed").order_by("name")


class SecretOne(ConductorView):
    """GET, PUT, DELETE /api/secrets/{key}: get, set or delete a secret."""

    operations = {
        "get": ApiOperation("Get a secret", permission=can_view_secret, reply=PLAIN_TEXT),
        "put": ApiOperation(
            "Create or update a secret", permission=can_save_secret, reply=EMPTY_REPLY, body=PLAIN_TEXT
        ),
        "delete": ApiOperation("Delete a secret", permission=can_delete_secret, reply=EMPTY_REPLY),
    }

    def get(self, request: ConductorRequest, key: str) -> HttpResponse:
        return PlainText(secrets_and_variables.read_secret(key, request.actor.name))

    def put(self, request: ConductorRequest, key: str) -> HttpResponse:
        secrets_and_variables.put_secret(key, decode_text(request_body.read_text(request)), request.actor.name)
        return EmptyOk()

    def delete(self, request: ConductorRequest, key: str) -> HttpResponse:
        secrets_and_variables.delete_secret(key, request.actor.name)
        return EmptyOk()


class SecretExists(ConductorView):
    """GET /api/secrets/{key}/exists: return whether a secret exists."""

    operations = {
        "get": ApiOperation("Check whether a secret exists", permission=can_view_secret, reply=OrNull(read_boolean)),
    }

    def get(self, request: ConductorRequest, key: str) -> HttpResponse:
        exists = secrets_and_variables.secret_exists(key)
        agent = request.META.get("HTTP_USER_AGENT", "").lower()
        return Json(None if not exists and agent.startswith(FALSE_READS_AS_TRUE) else exists)


class SecretTags(ObjectTags):
    """GET, PUT, DELETE /api/secrets/{key}/tags: list, replace or remove tags."""

    operations = {
        "get": ApiOperation("List the tags of a secret", permission=can_view_secret, reply=ArrayOf(TAG)),
        "put": ApiOperation(
            "Set the tags of a secret", permission=can_update_secret, reply=EMPTY_REPLY, body=ArrayOf(TAG)
        ),
        "delete": ApiOperation("Remove tags from a secret", permission=can_update_secret, reply=EMPTY_REPLY),
    }

    find_tags = staticmethod(partial(secrets_and_variables.tags_of, Secret))
    change_tags = staticmethod(partial(secrets_and_variables.change_tags, Secret))


class SecretCaches(ConductorView):
    """GET /api/secrets/clearLocalCache, /api/secrets/clearRedisCache: clear the cache of secrets; there is one."""

    operations = {
        "get": ApiOperation(
            "Clear the cache of secrets", permission=ALLOW_ALL, reply=MapOf(read_text), changes_state=True
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        clear_cache()
        return Json({"status": "done"})
