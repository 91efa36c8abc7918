"""Variables that definitions read as `${workflow.env.NAME}`."""

from functools import partial

from django.http import HttpResponse

from ....access.access_types import READ, VARIABLE
from ....engine.access import secrets_and_variables
from ....models import Variable
from .. import request_body
from ..api_operation import EMPTY_REPLY, PLAIN_TEXT, ApiOperation, ArrayOf
from ..definitions.tag_serializers import TAG
from ..definitions.tag_views import ObjectTags
from ..openapi import tables as shapes
from ..permission_rules import ALLOW_ALL
from ..permissions import can_delete_variable, can_save_variable, can_update_variable, can_view_variable
from ..replies import EmptyOk, Json, PlainText
from ..view import ConductorRequest, ConductorView
from .secret_serializers import decode_text


class EnvironmentVariables(ConductorView):
    """GET /api/environment: list all variables with their values."""

    operations = {
        "get": ApiOperation("List environment variables", permission=ALLOW_ALL, reply=ArrayOf(shapes.VARIABLE)),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        variables = (
            (name, value)
            for name, value in secrets_and_variables.list_variables().items()
            if can_read_variable(request, name)
        )
        return Json([{"name": name, "value": value} for name, value in variables])


def can_read_variable(request: ConductorRequest, name: str) -> bool:
    return request.actor.permissions.allows(READ, VARIABLE, name)


class EnvironmentVariable(ConductorView):
    """GET, PUT, DELETE /api/environment/{key}: get, set or delete a variable.

    The value of an unknown variable is empty.
    """

    operations = {
        "get": ApiOperation("Get an environment variable", permission=can_view_variable, reply=PLAIN_TEXT),
        "put": ApiOperation(
            "Create or update an environment variable", permission=can_save_variable, reply=EMPTY_REPLY, body=PLAIN_TEXT
        ),
        "delete": ApiOperation(
            "Delete an environment variable; replies with its value", permission=can_delete_variable, reply=PLAIN_TEXT
        ),
    }

    def get(self, request: ConductorRequest, key: str) -> HttpResponse:
        return PlainText(secrets_and_variables.list_variables().get(key, ""))

    def put(self, request: ConductorRequest, key: str) -> HttpResponse:
        secrets_and_variables.put_variable(key, decode_text(request_body.read_text(request)), request.actor.name)
        return EmptyOk()

    def delete(self, request: ConductorRequest, key: str) -> HttpResponse:
        value = secrets_and_variables.list_variables().get(key, "") if can_read_variable(request, key) else ""
        secrets_and_variables.delete_variable(key, request.actor.name)
        return PlainText(value)


class EnvironmentTags(ObjectTags):
    """GET, PUT, DELETE /api/environment/{key}/tags: list, replace or remove tags."""

    operations = {
        "get": ApiOperation(
            "List the tags of an environment variable", permission=can_view_variable, reply=ArrayOf(TAG)
        ),
        "put": ApiOperation(
            "Set the tags of an environment variable",
            permission=can_update_variable,
            reply=EMPTY_REPLY,
            body=ArrayOf(TAG),
        ),
        "delete": ApiOperation(
            "Remove tags from an environment variable", permission=can_update_variable, reply=EMPTY_REPLY
        ),
    }

    find_tags = staticmethod(partial(secrets_and_variables.tags_of, Variable))
    change_tags = staticmethod(partial(secrets_and_variables.change_tags, Variable))
