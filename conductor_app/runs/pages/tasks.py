"""Views of one attempt that pages of runs, queues and human tasks link to: its payloads, its log, and its actions."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from ...access.visibility import visible
from ...core.errors import NotFound, RequestRefused
from ...tasks.pages.actions import PERMISSION, TASK_ACTIONS
from ...tasks.pages.task_panel import DOCUMENTS, attempts_for_panel, log_text_response
from ...web.documents import json_file_response
from ...web.links import run_address
from ...web.pages import ObjectPage, require_permission, require_permission_on_any, show_refusal
from ..models import Attempt


class AttemptPayloadPage(ObjectPage):
    """Download of one payload as JSON."""

    name, permission = "attempt_raw", "conductor.view_attempt"
    shows_granted_rows = True
    route = "conductor/attempt/<path:attempt_id>/raw/<str:field>/"

    def get_context(self, request: HttpRequest, attempt_id: str, field: str) -> Any:
        attempt = find_attempt(attempt_id)
        if field not in DOCUMENTS:
            raise NotFound(_("There is no such payload."))
        return json_file_response(getattr(attempt, field), f"{attempt.pk}-{field}")


class AttemptLogPage(ObjectPage):
    """Download of the complete log."""

    name, permission = "attempt_log", "conductor.view_attempt"
    shows_granted_rows = True
    route = "conductor/attempt/<path:attempt_id>/log/"

    def get_context(self, request: HttpRequest, attempt_id: str) -> Any:
        return log_text_response(find_attempt(attempt_id))


class TaskActionPage(ObjectPage):
    """Buttons of a task. They return to the page that the button was on."""

    name, permission = "task_act", "conductor.view_attempt"
    shows_granted_rows = True
    route = "conductor/attempt/<path:attempt_id>/do/<str:name>/"

    def get_context(self, request: HttpRequest, attempt_id: str, name: str) -> Any:
        return HttpResponseNotAllowed(["POST"])

    def handle_post(self, request: HttpRequest, attempt_id: str, name: str) -> HttpResponse:
        act = TASK_ACTIONS.get(name)
        if act is None:
            raise NotFound(_("There is no such action."))
        require_permission_on_any(request, PERMISSION)
        attempt = find_attempt(attempt_id)
        require_permission(request, PERMISSION, attempt)
        reason = request.POST.get("reason", "").strip()
        try:
            act.command(attempt, request.POST, request.user.get_username(), reason)
            messages.success(request, str(act.done))
        except RequestRefused as refused:
            show_refusal(request, refused, (_("Explain"), reverse("admin:why_waiting", args=[attempt.pk])))
        return HttpResponseRedirect(_return_address(attempt, request.POST.get("back", "")))


def find_attempt(attempt_id: str) -> Attempt:
    """Return an attempt that the actor may see, with what its panel shows."""
    attempt = visible(attempts_for_panel().filter(pk=attempt_id)).first()
    if attempt is None:
        raise NotFound(_("No such attempt: %(id)s.") % {"id": attempt_id})
    return attempt


def _return_address(attempt: Attempt, to: str) -> str:
    """Return the page that the button was on: the queue position, or the run with the task selected."""
    if to == "why_waiting":
        return reverse("admin:why_waiting", args=[attempt.pk])
    return f"{run_address(attempt.run_id)}?{urlencode({'task': str(attempt.task)})}"
