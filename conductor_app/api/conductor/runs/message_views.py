"""Messages that clients send to a running workflow."""

from django.http import HttpResponse

from ....core.document.checks.values import read_mapping
from ....engine.runs import inbox
from ..api_operation import PLAIN_TEXT, ApiOperation
from ..permissions import can_control_run
from ..replies import PlainText
from ..request_body import read_object
from ..view import ConductorRequest, ConductorView


class WorkflowMessages(ConductorView):
    """POST /api/workflow/{workflowId}/messages: keep a message until a PULL_WORKFLOW_MESSAGES task takes it.

    A refusal has the shape of all others, where the original answers bare text (api §1.2): clients read its message.
    """

    operations = {
        "post": ApiOperation(
            "Send a message to a running workflow", permission=can_control_run, reply=PLAIN_TEXT, body=read_mapping
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        return PlainText(inbox.send_inbox_message(workflow, read_object(request)))
