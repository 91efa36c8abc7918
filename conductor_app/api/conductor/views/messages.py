"""Messages that clients send to a running workflow."""

from django.http import HttpResponse

from ....core.errors import Conflict, NotFound, QueueFull
from ....engine import inbox
from ..body import document
from ..errors import status_of
from ..replies import PlainText
from ..view import ConductorRequest, ConductorView


class WorkflowMessages(ConductorView):
    """POST /api/workflow/{workflowId}/messages: keep a message until a PULL_WORKFLOW_MESSAGES task takes it."""

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        try:
            return PlainText(inbox.send(workflow, document(request)))
        except (NotFound, Conflict, QueueFull) as refused:
            # The reply is bare text, and so is a refusal (api §1.2).
            return PlainText(refused.message, status_of(refused))
