"""Messages that clients send to a running workflow."""

from django.http import HttpResponse

from ....engine import inbox
from ..replies import PlainText
from ..request_body import read_object
from ..view import ConductorRequest, ConductorView


class WorkflowMessages(ConductorView):
    """POST /api/workflow/{workflowId}/messages: keep a message until a PULL_WORKFLOW_MESSAGES task takes it.

    A refusal has the shape of all others, where the original answers bare text (api §1.2): clients read its message.
    """

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        return PlainText(inbox.send_inbox_message(workflow, read_object(request)))
