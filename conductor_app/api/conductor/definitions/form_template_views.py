"""Views of user form templates."""

from django.http import HttpResponse

from ....access.access_types import FORM_TEMPLATE
from ....access.permissions import filter_readable
from ....core.errors import NotFound
from ....engine.definitions import form_templates
from ....engine.tasks import human_tasks
from ....insight.definitions.form_templates import find_template, template_of
from ....models import FormTemplate
from .. import request_body
from ..api_operation import EMPTY_REPLY, ApiOperation, ArrayOf
from ..openapi import tables as shapes
from ..permission_rules import ALLOW_ALL
from ..permissions import can_delete_template, can_save_template, can_view_human_task_by_name, can_view_template
from ..query_parameters import parse_integer
from ..replies import EmptyOk, Json
from ..request_fields import errors_under
from ..tasks.human_task_serializers import form_template_document
from ..tasks.human_task_views import find_human_task as find_task
from ..view import ConductorRequest, ConductorView

MAX_TEMPLATES = 1_000


class FormTemplates(ConductorView):
    """GET, POST /api/human/template: list all templates, those with a name, or one version; save a template."""

    operations = {
        "get": ApiOperation(
            "List user form templates",
            permission=ALLOW_ALL,
            reply=ArrayOf(shapes.FORM_TEMPLATE),
            query={"name": str, "version": int},
        ),
        "post": ApiOperation(
            "Create or update a user form template",
            permission=can_save_template,
            reply=shapes.FORM_TEMPLATE,
            body=shapes.FORM_TEMPLATE,
            query={"newVersion": bool},
        ),
    }

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
    """POST /api/human/template/bulk: save several templates, or none if one of them is invalid."""

    operations = {
        "post": ApiOperation(
            "Create or update several user form templates",
            permission=can_save_template,
            reply=ArrayOf(shapes.FORM_TEMPLATE),
            body=ArrayOf(shapes.FORM_TEMPLATE),
            query={"newVersion": bool},
        ),
    }

    def post(self, request: ConductorRequest) -> HttpResponse:
        documents = request_body.read_objects(request)
        with errors_under("saveTemplates.templates"):
            saved = form_templates.save_templates(documents, request.actor.name, new_version=wants_new_version(request))
        return Json([form_template_document(row) for row in saved])


class FormTemplateNamed(ConductorView):
    """GET /api/human/template/{humanTaskId}: get the template of a task. DELETE …/{name}: delete all its versions."""

    operations = {
        "get": ApiOperation(
            "Get the user form template of a human task",
            permission=can_view_human_task_by_name,
            reply=shapes.FORM_TEMPLATE,
        ),
        "delete": ApiOperation(
            "Delete all versions of a user form template", permission=can_delete_template, reply=EMPTY_REPLY
        ),
    }

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        row = template_of(human_tasks.load_input(find_task(name)))
        if row is None:
            raise NotFound(f"The human task {name} names no stored form template.")
        return Json(form_template_document(row))

    def delete(self, request: ConductorRequest, name: str) -> HttpResponse:
        form_templates.delete_template(name, None, request.actor.name)
        return EmptyOk()


class FormTemplateOne(ConductorView):
    """GET, DELETE /api/human/template/{name}/{version}: get or delete one version; 0 is the newest."""

    operations = {
        "get": ApiOperation(
            "Get a version of a user form template", permission=can_view_template, reply=shapes.FORM_TEMPLATE
        ),
        "delete": ApiOperation(
            "Delete a version of a user form template", permission=can_delete_template, reply=EMPTY_REPLY
        ),
    }

    def get(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        return Json(form_template_document(find_template(name, parse_integer(version, "version"))))

    def delete(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        form_templates.delete_template(name, parse_integer(version, "version"), request.actor.name)
        return EmptyOk()


def wants_new_version(request: ConductorRequest) -> bool:
    """Return True if the request saves a new version instead of overwriting the newest."""
    return request.query.flag("newVersion", default=False)
