"""Views of webhooks, of the requests that arrive at their addresses, and of the queue that completes waiting tasks."""

from contextlib import suppress

from django.http import HttpResponse

from ...access.authentication import Target
from ...access.permissions import DELETE, READ, UPDATE, WEBHOOK
from ...access.visibility import visible
from ...core.decide import Report
from ...core.document.fields import IntegerOf, MapOf, read_mapping, read_text
from ...core.errors import Invalid, NotFound, PayloadTooLarge
from ...core.validation.lint_fields import lint_document
from ...definitions.api.tags import WorkflowTags, tag_operations
from ...runs.documents.workflows import find_run
from ...tasks.api.serializers import parse_outcome
from ...tasks.commands.reports import report_by_ref, report_task
from ...web.api import permissions as targets
from ...web.api import requests as request_body
from ...web.api.documents import TAG
from ...web.api.operations import PLAIN_TEXT, ApiOperation, ArrayOf, EmptyOk, Json, PlainText, add_findings
from ...web.api.permissions import (
    ADMINISTRATORS_ONLY,
    ALLOW_ALL,
    TASK_REPORT_RIGHTS,
    RequiresAccess,
    RequiresDefinitionAccess,
    definitions_in_body,
)
from ...web.api.requests import errors_under
from ...web.api.view import ConductorRequest, ConductorView
from ..commands import webhooks
from ..models import Webhook
from . import handlers
from .handlers import webhook_document

can_report_task = RequiresAccess(TASK_REPORT_RIGHTS, targets.attempt_in_address("task_id"))
can_complete_by_reference = RequiresAccess(TASK_REPORT_RIGHTS, targets.tasks_by_reference("workflow"))
can_create_webhook = RequiresDefinitionAccess(WEBHOOK, targets.definitions_in_body(WEBHOOK))
QUEUE_STATUSES = ("COMPLETED", "FAILED")
QUEUE_NAME_FORMAT = "conductor:{}"
MAX_BODY_BYTES = 1 << 20
"""The maximum size of the body of a webhook's request."""
OTHER_FIELDS = frozenset(("url", "createTime", "updateTime", "updatedBy", "webhookExecutionHistory"))
"""Fields of replies, and of Orkes, that clients send back."""


def webhook_in_address(request: ConductorRequest, url_kwargs: dict[str, str]) -> list[Target]:
    """Return the webhook with the id in the path, by its name. A missing one is a target that no grant matches."""
    names = Webhook.objects.filter(pk=url_kwargs["id"]).values_list("name", flat=True)
    return [{WEBHOOK: name} for name in names] or [{}]


def requires_on_webhook(access: str) -> RequiresAccess:
    """Return the rule that requires an access to the webhook with the id in the path."""
    return RequiresAccess(((access, WEBHOOK),), webhook_in_address, names_targets=False)


class RequiresWebhookUpdate(RequiresDefinitionAccess):
    """UPDATE on the webhook with the id in the path, and the permission to save the name in the body."""

    def check(self, request: ConductorRequest, url_kwargs: dict[str, str]) -> None:
        """Check the permission, and note the name that the request creates.

        Raises:
            Forbidden: when the actor lacks the permission.
        """
        requires_on_webhook(UPDATE).check(request, url_kwargs)
        super().check(request, url_kwargs)


can_update_webhook = RequiresWebhookUpdate(WEBHOOK, definitions_in_body(WEBHOOK))
can_view_webhook = requires_on_webhook(READ)
can_delete_webhook = requires_on_webhook(DELETE)


class EventQueueSizes(ConductorView):
    """GET /api/queue/size: return the size of each queue, which is 0 because messages take effect at once."""

    @ApiOperation("Get the sizes of the queues that complete waiting tasks", ALLOW_ALL, reply=MapOf(IntegerOf()))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json({QUEUE_NAME_FORMAT.format(status): 0 for status in QUEUE_STATUSES})


class EventQueues(ConductorView):
    """GET /api/queue/: get the queue of each status."""

    @ApiOperation("List the queues that complete waiting tasks", ALLOW_ALL, reply=MapOf(read_text))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json({status: QUEUE_NAME_FORMAT.format(status) for status in QUEUE_STATUSES})


class EventForReference(ConductorView):
    """POST /api/queue/update/{workflowId}/{taskRef}/{status}: end the open task with this reference name."""

    @ApiOperation("Complete a waiting task by its reference name", can_complete_by_reference, body=read_mapping)
    def post(self, request: ConductorRequest, workflow: str, ref: str, status: str) -> None:
        report = parse_message(request, status)
        find_run(workflow)
        # It stands for a message in a queue, for which no task may be waiting.
        with suppress(NotFound):
            report_by_ref(workflow, ref, report, request.actor.name)


class EventForTask(ConductorView):
    """POST /api/queue/update/{workflowId}/task/{taskId}/{status}: end this task, if it is open."""

    @ApiOperation("Complete a waiting task", can_report_task, body=read_mapping)
    def post(self, request: ConductorRequest, workflow: str, task_id: str, status: str) -> None:
        report_task(workflow, task_id, parse_message(request, status), request.actor.name)


def parse_message(request: ConductorRequest, status: str) -> Report:
    """Return the report that a message contains."""
    if status not in QUEUE_STATUSES:
        raise Invalid(f"There is no queue for the status {status[:100]}. Queues exist for {', '.join(QUEUE_STATUSES)}.")
    output = request_body.read_object(request) if request_body.read_bytes(request) else {}
    return Report(outcome=parse_outcome(status), output=output, merges=True)


class Webhooks(ConductorView):
    """GET, POST /api/metadata/webhook: list all webhooks, or create one."""

    @ApiOperation("List the readable webhooks", ALLOW_ALL, reply=ArrayOf(handlers.WEBHOOK))
    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = visible(Webhook.objects.order_by("name"))
        return Json([webhook_document(row) for row in rows])

    @ApiOperation(
        "Create a webhook", can_create_webhook, reply=handlers.WEBHOOK, body=handlers.WEBHOOK, reports_findings=True
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        document = request_body.read_object(request)
        with errors_under("createWebhook.webhookConfig"):
            reply = Json(webhook_document(webhooks.create_webhook(document, request.actor.name)))
        return add_findings(reply, list(lint_document(document, handlers.WEBHOOK, OTHER_FIELDS)))


class WebhookOne(ConductorView):
    """GET, PUT, DELETE /api/metadata/webhook/{id}: get, update or delete a webhook."""

    @ApiOperation("Get a webhook", can_view_webhook, reply=handlers.WEBHOOK)
    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        return Json(webhook_document(webhooks.find_webhook(id)))

    @ApiOperation(
        "Update a webhook", can_update_webhook, reply=handlers.WEBHOOK, body=handlers.WEBHOOK, reports_findings=True
    )
    def put(self, request: ConductorRequest, id: str) -> HttpResponse:
        document = request_body.read_object(request)
        with errors_under("updateWebhook.webhookConfig"):
            reply = Json(webhook_document(webhooks.update_webhook(id, document, request.actor.name)))
        return add_findings(reply, list(lint_document(document, handlers.WEBHOOK, OTHER_FIELDS)))

    @ApiOperation("Delete a webhook", can_delete_webhook)
    def delete(self, request: ConductorRequest, id: str) -> None:
        webhooks.delete_webhook(id, request.actor.name)


class WebhookTags(ConductorView):
    """GET, PUT, DELETE /api/metadata/webhook/{name}/tags: list, add or remove tags."""

    operations = tag_operations("a webhook", ADMINISTRATORS_ONLY, ADMINISTRATORS_ONLY, removed=ArrayOf(TAG))

    target = WEBHOOK

    get, put, delete = WorkflowTags.get, WorkflowTags.post, WorkflowTags.delete


class IncomingWebhook(ConductorView):
    """POST /api/webhook/{id}, POST /webhook/{id}: receive an event from another system and verify its signature."""

    needs_login = False

    @ApiOperation(
        "Publish an event through a webhook",
        reply=PLAIN_TEXT,
        body=read_mapping,
        empty_when="the request is an event, not the challenge of a new sender",
    )
    def post(self, request: ConductorRequest, id: str) -> HttpResponse:
        content = request_body.read_bytes(request)
        if len(content) > MAX_BODY_BYTES:
            raise PayloadTooLarge(f"The body of a webhook may have at most {MAX_BODY_BYTES} bytes.")
        headers = {name.lower(): value for name, value in request.headers.items()}
        answer = webhooks.receive_webhook(id, headers, content)
        return PlainText(answer) if answer else EmptyOk()
