"""Actions on a run or from one of its tasks, as a table that the list and the pages share, and its labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.visibility import visible
from ...core.errors import Invalid, RequestRefused
from ...core.states import RUN
from ...tasks.pages.actions import PERMISSION
from ...utils.formatting import LazyText
from ...web.links import run_address
from ...web.pages import require_permission, require_permission_on_any, show_refusal
from ..commands import control, repair
from ..models import Run
from .view_model import no_such_run


def label_context(run: Run) -> dict[str, Any]:
    """Return the labels of the run with links to the list of runs. The run was loaded with its labels."""
    runs = reverse("admin:conductor_run_changelist")
    names = sorted(run.label_names.split(",")) if run.label_names else []
    return {
        "labels": [(name, f"{runs}?{urlencode({'label': name})}") for name in names],
        "most": control.MAX_LABELS,
    }


def require_run_permission(request: HttpRequest, permission: str, run_id: str) -> None:
    """Require a permission on a run.

    Raises:
        PermissionDenied: when the user does not have the permission.
        Http404: when the user may not see the run.
    """
    if request.user.has_perm(permission):
        return
    require_permission_on_any(request, permission)
    run = visible(Run.objects.filter(pk=run_id)).only("name").first()
    if run is None:
        raise Http404(no_such_run(run_id))
    require_permission(request, permission, run)


def change_labels(request: HttpRequest, run_id: str) -> HttpResponse:
    """Add labels, or remove one."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    require_run_permission(request, PERMISSION, run_id)
    by, reason = request.user.get_username(), request.POST.get("reason", "").strip()
    try:
        if removed := request.POST.getlist("remove"):
            control.remove_labels(run_id, removed, by, reason)
            messages.success(request, _("Label removed."))
        else:
            new_labels = [label for label in request.POST.get("labels", "").split(",") if label.strip()]
            count = len(control.add_labels(run_id, new_labels, by, reason))
            message = ngettext("%(count)s label added.", "%(count)s labels added.", count) % {"count": count}
            messages.success(request, message)
    except RequestRefused as refused:
        show_refusal(request, refused)
    return HttpResponseRedirect(run_address(run_id))


@dataclass(frozen=True, slots=True)
class RunAction:
    """One action on a run. `event`: the transition of core/states.py that it requires.

    `ends_run`: the action ends the run, so pages do not offer it for ended runs, although the state machine allows it.
    """

    name: str
    event: str
    command: Callable[..., None]
    label: str | LazyText
    done: str | LazyText
    sentence: str | LazyText
    options: tuple[tuple[str, Any], ...] = ()
    permission: str = "conductor.change_run"
    is_destructive: bool = False
    needs_attempt: bool = False  # offered for one attempt, whose id is a parameter
    is_planned: bool = False  # repeats work, so the planner previews it
    ends_run: bool = False
    button: str | LazyText = ""

    @property
    def css(self) -> str:
        """Return how pages show the action: only one that ends the run is red before its form is open."""
        if self.is_destructive:
            return "destructive" if self.ends_run else "discards"
        return "main" if self.name in ("retry", "resume") else ""

    def is_possible(self, status: str) -> bool:
        """Return True if the state machine allows the action, it changes the status, and pages offer it."""
        if self.ends_run and status in RUN.final:
            return False
        return RUN.allows(status, self.event) and RUN.after(status, self.event) != status

    def parse_options(self, answers: Mapping[str, str]) -> dict[str, Any]:
        """Return the selected options, and the attempt that the action requires."""
        options: dict[str, Any] = {name: True for name, _label in self.options if name in answers}
        if not self.needs_attempt:
            return options
        if not answers.get("attempt_id"):
            raise Invalid(_("No task selected."))
        return {**options, "attempt_id": answers["attempt_id"]}


RUN_ACTIONS: dict[str, RunAction] = {
    action.name: action
    for action in (
        RunAction(
            "retry",
            "retry",
            repair.retry,
            gettext_lazy("Retry"),
            gettext_lazy("Retry started."),
            gettext_lazy("Retries failed, timed-out and canceled tasks; completed tasks keep their results."),
            options=(("resume_children", gettext_lazy("Resume failed sub-workflows instead of restarting them")),),
            is_planned=True,
            button=gettext_lazy("Retry this run"),
        ),
        RunAction(
            "restart",
            "restart",
            repair.restart,
            gettext_lazy("Restart"),
            gettext_lazy("Restarted."),
            gettext_lazy("Restarts from the beginning with the same id and input. All task results are discarded."),
            options=(("latest_definitions", gettext_lazy("Use the newest version of the definition")),),
            is_destructive=True,
            is_planned=True,
            button=gettext_lazy("Restart this run"),
        ),
        RunAction(
            "rerun",
            "rerun",
            repair.rerun,
            gettext_lazy("Rerun from this task"),
            gettext_lazy("Rerun started."),
            gettext_lazy("Re-executes this task and everything after it. Other branches keep their results."),
            is_destructive=True,
            needs_attempt=True,
            is_planned=True,
            button=gettext_lazy("Rerun from this task"),
        ),
        RunAction(
            "pause",
            "pause",
            control.pause_run,
            gettext_lazy("Pause"),
            gettext_lazy("Paused."),
            gettext_lazy("No new tasks are scheduled until the run is resumed. Tasks in progress continue."),
            button=gettext_lazy("Pause this run"),
        ),
        RunAction(
            "resume",
            "resume",
            control.resume_run,
            gettext_lazy("Resume"),
            gettext_lazy("Resumed."),
            gettext_lazy("Continues the run from where it was paused."),
            button=gettext_lazy("Resume this run"),
        ),
        RunAction(
            "terminate",
            "terminate",
            control.terminate_run,
            gettext_lazy("Terminate"),
            gettext_lazy("Terminated."),
            gettext_lazy("Stops the run permanently. Open tasks and sub-workflows are canceled."),
            options=(("with_failure", gettext_lazy("Start the failure workflow")),),
            is_destructive=True,
            ends_run=True,
            button=gettext_lazy("Terminate this run"),
        ),
    )
}
"""All actions, in the order in which pages offer them."""


def run_actions() -> list[RunAction]:
    return [action for action in RUN_ACTIONS.values() if not action.needs_attempt]


def available_actions(status: str, has_permission: Callable[[str], bool]) -> dict[str, list[RunAction]]:
    """Return the actions that the user may do on a run in this status: on the run, and from one of its tasks."""
    possible = [
        action for action in RUN_ACTIONS.values() if action.is_possible(status) and has_permission(action.permission)
    ]
    return {
        "actions": [action for action in possible if not action.needs_attempt],
        "task_actions": [action for action in possible if action.needs_attempt],
    }
