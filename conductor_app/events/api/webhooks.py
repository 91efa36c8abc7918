"""Views of webhooks, and of the requests that arrive at their addresses."""

from django.http import HttpResponse

from ....access.access_types import WEBHOOK
from ....access.permissions import filter_readable
from ....core.document.checks.values import read_mapping
from ....core.document.lint import lint_document
from ....core.errors import PayloadTooLarge
from ....engine.events import webhooks
from ....models import Webhook
from .. import request_body
from ..api_operation import EMPTY_REPLY, PLAIN_TEXT, ApiOperation, ArrayOf
from ..definitions.tag_serializers import TAG
from ..definitions.tag_views import WorkflowTags
from ..findings import add_findings
from ..openapi import tables as shapes
from ..permission_rules import ADMINISTRATORS_ONLY, ALLOW_ALL
from ..permissions import can_create_webhook, can_delete_webhook, can_update_webhook, can_view_webhook
from ..replies import EmptyOk, Json, PlainText
from ..request_fields import errors_under
from ..view import ConductorRequest, ConductorView
from .event_handler_serializers import webhook_document

MAX_BODY_BYTES = 1 << 20
"""The maximum size of the body of a webhook's request."""
OTHER_FIELDS = frozenset(("url", "createTime", "updateTime", "updatedBy", "webhookExecutionHistory"))
"""Fields of replies, and of Orkes, that clients send back."""


class Webhooks(ConductorView):
    """GET, POST /api/metadata/webhook: list all webhooks, or create one."""

    operations = {
        "get": ApiOperation("List the readable webhooks", permission=ALLOW_ALL, reply=ArrayOf(shapes.WEBHOOK)),
        "post": ApiOperation(
            "Create a webhook",
            permission=can_create_webhook,
            reply=shapes.WEBHOOK,
            body=shapes.WEBHOOK,
            reports_findings=True,
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = filter_readable(request.actor, Webhook.objects.order_by("name"), WEBHOOK)
        return Json([webhook_document(row) for row in rows])

    def post(self, request: ConductorRequest) -> HttpResponse:
        document = request_body.read_object(request)
        with errors_under("createWebhook.webhookConfig"):
            reply = Json(webhook_document(webhooks.create_webhook(document, request.actor.name)))
        return add_findings(reply, list(lint_document(document, shapes.WEBHOOK, OTHER_FIELDS)))


class WebhookOne(ConductorView):
    """GET, PUT, DELETE /api/metadata/webhook/{id}: get, update or delete a webhook."""

    operations = {
        "get": ApiOperation("Get a webhook", permission=can_view_webhook, reply=shapes.WEBHOOK),
        "put": ApiOperation(
            "Update a webhook",
            permission=can_update_webhook,
            reply=shapes.WEBHOOK,
            body=shapes.WEBHOOK,
            reports_findings=True,
        ),
        "delete": ApiOperation("Delete a webhook", permission=can_delete_webhook, reply=EMPTY_REPLY),
    }

    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        return Json(webhook_document(webhooks.find_webhook(id)))

    def put(self, request: ConductorRequest, id: str) -> HttpResponse:
        document = request_body.read_object(request)
        with errors_under("updateWebhook.webhookConfig"):
            reply = Json(webhook_document(webhooks.update_webhook(id, document, request.actor.name)))
        return add_findings(reply, list(lint_document(document, shapes.WEBHOOK, OTHER_FIELDS)))

    def delete(self, request: ConductorRequest, id: str) -> HttpResponse:
        webhooks.delete_webhook(id, request.actor.name)
        return EmptyOk()


class WebhookTags(ConductorView):
    """GET, PUT, DELETE /api/metadata/webhook/{name}/tags: list, add or remove tags."""

    operations = {
        "get": ApiOperation("List the tags of a webhook", permission=ADMINISTRATORS_ONLY, reply=ArrayOf(TAG)),
        "put": ApiOperation(
            "Set the tags of a webhook", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY, body=ArrayOf(TAG)
        ),
        "delete": ApiOperation(
            "Remove tags from a webhook", permission=ADMINISTRATORS_ONLY, reply=EMPTY_REPLY, body=ArrayOf(TAG)
        ),
    }

    target = WEBHOOK

    get, put, delete = WorkflowTags.get, WorkflowTags.post, WorkflowTags.delete


class IncomingWebhook(ConductorView):
    """POST /api/webhook/{id}, POST /webhook/{id}: receive an event from another system and verify its signature."""

    operations = {
        "post": ApiOperation(
            "Publish an event through a webhook",
            reply=PLAIN_TEXT,
            body=read_mapping,
            empty_when="the request is an event, not the challenge of a new sender",
        ),
    }

    needs_login = False

    def post(self, request: ConductorRequest, id: str) -> HttpResponse:
        content = request_body.read_bytes(request)
        if len(content) > MAX_BODY_BYTES:
            raise PayloadTooLarge(f"The body of a webhook may have at most {MAX_BODY_BYTES} bytes.")
        headers = {name.lower(): value for name, value in request.headers.items()}
        answer = webhooks.receive_webhook(id, headers, content)
        return PlainText(answer) if answer else EmptyOk()
