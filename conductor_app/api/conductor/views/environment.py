"""Variables that definitions read as `${workflow.env.NAME}`."""

from django.http import HttpResponse

from ....access.access_types import READ, VARIABLE
from ....engine import secrets_and_variables
from ....models import Variable
from .. import request_body
from ..replies import EmptyOk, Json, PlainText
from ..serializers.secrets import decode_text
from ..view import ConductorRequest, ConductorView
from .tags import NamedTags


class EnvironmentVariables(ConductorView):
    """GET /api/environment: all variables with their values."""

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
    """GET, PUT, DELETE /api/environment/{key}: show a variable, keep it, forget it. An unknown one is empty."""

    def get(self, request: ConductorRequest, key: str) -> HttpResponse:
        return PlainText(secrets_and_variables.list_variables().get(key, ""))

    def put(self, request: ConductorRequest, key: str) -> HttpResponse:
        secrets_and_variables.put_variable(key, decode_text(request_body.read_bytes(request)), request.actor.name)
        return EmptyOk()

    def delete(self, request: ConductorRequest, key: str) -> HttpResponse:
        secrets_and_variables.delete_variable(key, request.actor.name)
        return EmptyOk()


class EnvironmentTags(NamedTags):
    """GET, PUT, DELETE /api/environment/{key}/tags: shown, replaced, taken off."""

    model = Variable

    get, put, delete = NamedTags.get, NamedTags.put, NamedTags.delete
