"""Views of schemas."""

from django.http import HttpResponse

from ....access.access_types import SCHEMA
from ....access.permissions import filter_readable
from ....core.document.checks.field_specs import SCHEMA as SCHEMA_FIELDS
from ....core.errors import Invalid, ValidationError, ValidationFailed
from ....engine.definitions import schemas
from ....models import SchemaDefinition
from .. import request_body
from ..api_operation import EMPTY_REPLY, ApiOperation, ArrayOf
from ..permission_rules import ALLOW_ALL
from ..permissions import can_delete_schema, can_save_schemas, can_view_schema
from ..query_parameters import parse_integer
from ..replies import EmptyOk, Json
from ..request_fields import errors_under
from ..view import ConductorRequest, ConductorView
from .definition_serializers import schema_document, short_schema_document


class Schemas(ConductorView):
    """GET, POST /api/schema: list all schemas (`short` omits their data), or save schemas.

    One client sends an object, others a list.
    """

    operations = {
        "get": ApiOperation(
            "List all schemas", permission=ALLOW_ALL, reply=ArrayOf(SCHEMA_FIELDS), query={"short": bool}
        ),
        "post": ApiOperation(
            "Create or update schemas",
            permission=can_save_schemas,
            reply=EMPTY_REPLY,
            body=ArrayOf(SCHEMA_FIELDS),
            query={"newVersion": bool},
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = filter_readable(request.actor, SchemaDefinition.objects.order_by("name", "version"), SCHEMA)
        is_short = request.query.flag("short", default=False)
        return Json([short_schema_document(row) if is_short else schema_document(row) for row in rows])

    def post(self, request: ConductorRequest) -> HttpResponse:
        sent = request_body.read_json(request)
        documents = sent if isinstance(sent, list) else [sent]
        if not all(isinstance(each, dict) for each in documents):
            raise Invalid("The request body must be a schema or a list of schemas.")
        if not documents:
            raise ValidationFailed([ValidationError("saveSchema.schemas", "The list of schemas is empty")])
        with errors_under("saveSchema.schemas"):
            schemas.save_schemas(
                documents, request.actor.name, new_version=request.query.flag("newVersion", default=False)
            )
        return EmptyOk()


class SchemaNewest(ConductorView):
    """GET, DELETE /api/schema/{name}: get the newest version, or delete all versions."""

    operations = {
        "get": ApiOperation("Get the latest version of a schema", permission=can_view_schema, reply=SCHEMA_FIELDS),
        "delete": ApiOperation("Delete all versions of a schema", permission=can_delete_schema, reply=EMPTY_REPLY),
    }

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        return Json(schema_document(schemas.find_schema(name)))

    def delete(self, request: ConductorRequest, name: str) -> HttpResponse:
        schemas.delete_schema(name, None, request.actor.name)
        return EmptyOk()


class SchemaOne(ConductorView):
    """GET, DELETE /api/schema/{name}/{version}: get or delete one version."""

    operations = {
        "get": ApiOperation("Get a schema", permission=can_view_schema, reply=SCHEMA_FIELDS),
        "delete": ApiOperation("Delete a version of a schema", permission=can_delete_schema, reply=EMPTY_REPLY),
    }

    def get(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        return Json(schema_document(schemas.find_schema(name, parse_integer(version, "version"))))

    def delete(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        schemas.delete_schema(name, parse_integer(version, "version"), request.actor.name)
        return EmptyOk()
