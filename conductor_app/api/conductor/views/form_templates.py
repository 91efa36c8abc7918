"""User form templates: saved, listed, found by name and version or by the task that names one, deleted."""

from django.http import HttpResponse

from ....access.access_types import FORM_TEMPLATE
from ....access.permissions import filter_readable
from ....core.errors import NotFound
from ....engine import form_templates, human_tasks
from ....insight.form_templates import find_template, template_of
from ....models import FormTemplate
from .. import request_body
from ..query_parameters import parse_integer
from ..replies import EmptyOk, Json
from ..serializers.human_tasks import form_template_document
from ..serializers.requests import errors_under
from ..view import ConductorRequest, ConductorView
from .human_tasks import find_human_task as find_task

MAX_TEMPLATES = 1_000


class FormTemplates(ConductorView):
    """GET, POST /api/human/template: all templates, those with a name, or one version; save one."""

    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = filter_readable(request.actor, FormTemplate.objects.order_by("name", "version"), FORM_TEMPLATE)
        if name := request.query.text("name"):
            rows = rows.filter(name=name)
        if version := request.query.integer("version", 0):
            rows = rows.filter(version=version)
        return Json([form_template_document(row) for row in rows[:MAX_TEMPLATES]])

    def post(self, request: ConductorRequest) -> HttpResponse:
        document = request_body.read_object(request)
        with errors_under("saveTemplate.template"):
            saved = form_templates.save_templates(
                [document], request.actor.name, new_version=wants_new_version(request)
            )
        return Json(form_template_document(saved[0]))


class FormTemplatesBulk(ConductorView):
    """POST /api/human/template/bulk: save several templates, or none of them."""

    def post(self, request: ConductorRequest) -> HttpResponse:
        documents = request_body.read_objects(request)
        with errors_under("saveTemplates.templates"):
            saved = form_templates.save_templates(documents, request.actor.name, new_version=wants_new_version(request))
        return Json([form_template_document(row) for row in saved])


class FormTemplateNamed(ConductorView):
    """GET /api/human/template/{humanTaskId}: the template of a task. DELETE …/{name}: all versions of a template."""

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        row = template_of(human_tasks.load_input(find_task(name)))
        if row is None:
            raise NotFound(f"The human task {name} names no form template that is stored here.")
        return Json(form_template_document(row))

    def delete(self, request: ConductorRequest, name: str) -> HttpResponse:
        form_templates.delete_template(name, None, request.actor.name)
        return EmptyOk()


class FormTemplateOne(ConductorView):
    """GET, DELETE /api/human/template/{name}/{version}: one version; 0 is the newest."""

    def get(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        return Json(form_template_document(find_template(name, parse_integer(version, "version"))))

    def delete(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        form_templates.delete_template(name, parse_integer(version, "version"), request.actor.name)
        return EmptyOk()


def wants_new_version(request: ConductorRequest) -> bool:
    """Whether what is saved becomes a version of its own."""
    return request.query.flag("newVersion", default=False)
