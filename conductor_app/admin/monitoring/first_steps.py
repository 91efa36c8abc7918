"""The first steps on an empty server: a sample workflow, a worker of the user's own, and a first run."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import Invalid, RequestRefused
from ...core.step_structure import structure_of
from ...engine.definitions import definition_commands
from ...insight.queues.queue_states import QueueState, list_queues
from ...models import Run, WorkflowDefinition
from ..error_messages import require_permission, show_refusal
from ..pages import Page
from .worker_samples import SAMPLE_TASK, SAMPLE_WORKFLOW, WORKER_SAMPLES

PERMISSION = "conductor.add_workflowdefinition"
REASON = "sample workflow"


class FirstStepsPage(Page):
    """The first steps, which follow what the user does: a definition, a poll, a run."""

    name, permission, template = "first_steps", "conductor.view_run", "ops/overview/first_steps_page.html"
    title = gettext_lazy("Get started")
    live_template = "ops/overview/first_steps.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return {"shown": first_steps(list_queues(), counts_runs=False)}

    def post(self, request: HttpRequest) -> HttpResponse:
        """Create the sample workflow.

        Raises:
            PermissionDenied: when the user may not create definitions.
        """
        require_permission(request, PERMISSION)
        try:
            if request.POST.get("do") != "create_sample":
                raise Invalid(_("Missing or unknown action."))
            by = request.user.get_username()
            definition_commands.save_task(SAMPLE_TASK, by, overwrite=False, reason=REASON)
            definition_commands.save_workflow(SAMPLE_WORKFLOW, by, overwrite=False, reason=REASON)
            messages.success(request, _("Sample workflow created. Start the worker, then start a run."))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:index"))


def first_steps(states: list[QueueState], counts_runs: bool) -> dict[str, Any]:
    """Return which of the first steps a new user has done. `counts_runs`: True if there are runs for certain.

    The pollers of the built-in workers do not count.
    """
    newest = WorkflowDefinition.objects.order_by("-pk").only("pk", "name").first()
    polled = [queue for queue in states if queue.polled_at and not _is_built_in(queue.name)]
    return {
        "has_definitions": counts_runs or newest is not None,
        "definition": newest,
        "has_workers": bool(polled),
        "polled": max(polled, key=lambda queue: queue.polled_at or 0, default=None),
        "has_runs": counts_runs or (newest is not None and Run.objects.exists()),
        "samples": WORKER_SAMPLES,
    }


def _is_built_in(queue: str) -> bool:
    return structure_of(queue.rpartition(":")[2]).is_built_in
