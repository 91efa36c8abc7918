"""Variables that definitions read as `${workflow.env.NAME}`."""

from django.http import HttpResponse

from ....access.rights import READ, VARIABLE
from ....core.errors import NotFound
from ....engine import named
from ....models import Variable
from .. import body
from ..replies import Empty, Json, PlainText
from ..serializers.named import sent_text
from ..serializers.tags import sent_tags, without
from ..view import ConductorRequest, ConductorView


class EnvironmentVariables(ConductorView):
    """GET /api/environment: all variables with their values."""

    def get(self, request: ConductorRequest) -> HttpResponse:
        shown = ((name, value) for name, value in named.variables().items() if may_read(request, name))
        return Json([{"name": name, "value": value} for name, value in shown])


def may_read(request: ConductorRequest, name: str) -> bool:
    return request.actor.powers.over(READ, VARIABLE, name)


class EnvironmentVariable(ConductorView):
    """GET, PUT, DELETE /api/environment/{key}: show a variable, keep it, forget it. An unknown one is empty."""

    def get(self, request: ConductorRequest, key: str) -> HttpResponse:
        return PlainText(named.variables().get(key, ""))

    def put(self, request: ConductorRequest, key: str) -> HttpResponse:
        named.put_variable(key, sent_text(body.raw(request)), request.actor.name)
        return Empty()

    def delete(self, request: ConductorRequest, key: str) -> HttpResponse:
        named.delete_variable(key, request.actor.name)
        return Empty()


class EnvironmentTags(ConductorView):
    """GET, PUT, DELETE /api/environment/{key}/tags: shown, replaced, taken off."""

    def get(self, request: ConductorRequest, key: str) -> HttpResponse:
        row = Variable.objects.filter(pk=key).first()
        if row is None:
            raise NotFound(f"There is no variable named {key}.")
        return Json(row.tags)

    def put(self, request: ConductorRequest, key: str) -> HttpResponse:
        tags = sent_tags(request)
        named.change_tags(Variable, key, lambda _: tags, request.actor.name)
        return Empty()

    def delete(self, request: ConductorRequest, key: str) -> HttpResponse:
        tags = sent_tags(request)
        named.change_tags(Variable, key, lambda kept: without(kept, tags), request.actor.name)
        return Empty()
