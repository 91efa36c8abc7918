"""The list of human tasks: open tasks with their assignees, and completion of several tasks at once."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ... import clock
from ...access.conductor_auth import Actor
from ...access.human_tasks import can_complete_human_task, require_completion_right
from ...access.permission_cache import permission_set_of
from ...access.permissions import task_target
from ...core.errors import Invalid, RequestRefused
from ...engine.tasks import human_tasks
from ...insight.tasks.waiting_for_people import HumanTaskView, expected_output_names, human_task_inbox, waiting_attempts
from ...models import Attempt
from ..badges import render_pill
from ..error_messages import require_permission, show_refusal
from ..pages import Page

MAX_SHOWN = 200
MAX_AT_ONCE = 50
ACT_PERMISSION = "conductor.change_run"
INBOX_TABS = {"all": gettext_lazy("All"), "mine": gettext_lazy("Mine"), "groups": gettext_lazy("My groups")}


class HumanTasksPage(Page):
    """List of open human tasks."""

    name, template, permission = "human_tasks", "ops/human_tasks.html", "conductor.view_run"
    title = gettext_lazy("Human tasks")
    live_template = "ops/human_tasks/rows.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now, found, user = clock.now(), human_task_inbox(clock.now()), request.user
        groups = set(user.groups.values_list("name", flat=True))
        tasks_by_tab = {
            "all": found.task_views,
            "mine": [task_view for task_view in found.task_views if task_view.is_for_user(user.get_username())],
            "groups": [task_view for task_view in found.task_views if task_view.is_for_groups(groups)],
        }
        selected_tab = request.GET.get("assigned", "all")
        task_views = tasks_by_tab.get(selected_tab, found.task_views)
        return {
            "rows": (rows := [_task_row(request, task_view, now) for task_view in task_views[:MAX_SHOWN]]),
            "tabs": [(name, word, len(tasks_by_tab[name]), name == selected_tab) for name, word in INBOX_TABS.items()],
            "selected_tab": selected_tab,
            "is_cut": found.is_cut or len(task_views) > MAX_SHOWN,
            "most": MAX_SHOWN,
            "may_act": any(row["may_act"] for row in rows),
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        try:
            _show_results(request, *_answer_selected(request))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:human_tasks"))


def current_person(request: HttpRequest) -> Actor:
    """Return the user as the actor of a command."""
    return Actor(request.user.get_username(), permission_set_of(request.user.pk), request.user.pk)


def may_act(request: HttpRequest, attempt: Attempt) -> bool:
    """Return True if the user may claim, reassign and complete the task. The API applies the same rule."""
    # ACT grants access to all runs. Django has already loaded it.
    return request.user.has_perm(ACT_PERMISSION) or can_complete_human_task(
        current_person(request), permission_target(attempt)
    )


def permission_target(attempt: Attempt) -> dict[str, str]:
    """Return the names by which grants refer to the task."""
    return dict(task_target(attempt.queue, attempt.domain, attempt.task.name, attempt.run_id, attempt.run.name))


def assignee_text(task_view: HumanTaskView) -> str:
    """Return the assignee of a task as text."""
    to = task_view.assignment.assignee
    if task_view.claimed_by:
        return _("claimed by %(who)s") % {"who": task_view.claimed_by}
    if to is None:
        return _("anyone")
    return _("group %(who)s") % {"who": to.who} if to.is_group else to.who


def _task_row(request: HttpRequest, task_view: HumanTaskView, now: int) -> dict[str, Any]:
    return {
        "ask": task_view,
        "attempt": task_view.attempt,
        "assignee": assignee_text(task_view),
        "is_overdue": task_view.is_overdue(now),
        "overdue": render_pill("failed", _("overdue"), "late"),
        "is_simple": can_be_answered_in_bulk(task_view),
        "may_act": may_act(request, task_view.attempt),
    }


def can_be_answered_in_bulk(task_view: HumanTaskView) -> bool:
    """Return True if the task can be completed together with others: no later step reads its output."""
    return not expected_output_names(task_view.attempt.run.resolved_definition_id, task_view.attempt.task.ref)


def _answer_selected(request: HttpRequest) -> tuple[int, list[str]]:
    """Complete each selected task in its own transaction. Return the number of completed tasks and the errors."""
    selected = list(dict.fromkeys(request.POST.getlist("attempt")))[: MAX_AT_ONCE + 1]
    attempts = list(waiting_attempts().filter(pk__in=selected))
    if not any(may_act(request, attempt) for attempt in attempts):
        require_permission(request, ACT_PERMISSION)
    outcome, reason = request.POST.get("outcome", ""), request.POST.get("reason", "").strip()
    if not reason:
        raise Invalid(_("Enter a reason to complete several tasks at once."))
    if not selected or len(selected) > MAX_AT_ONCE:
        raise Invalid(_("Select between 1 and %(most)s tasks.") % {"most": MAX_AT_ONCE})
    done, refused = 0, []
    for attempt in attempts:
        try:
            if not may_act(request, attempt):
                require_completion_right(current_person(request), permission_target(attempt))
            if outcome == "COMPLETED" and expected_output_names(attempt.run.resolved_definition_id, attempt.task.ref):
                raise Invalid(_("Later steps read its output. Complete it on its own page."))
            human_tasks.resolve_task(attempt.run_id, attempt.pk, outcome, request.user.get_username(), {}, reason)
            done += 1
        except RequestRefused as why:
            refused.append(f"{attempt.task} ({attempt.run.name}): {why.message}")
    return done, refused


def _show_results(request: HttpRequest, done: int, refused: list[str]) -> None:
    message = ngettext("%(count)s task processed.", "%(count)s tasks processed.", done)
    (messages.success if done else messages.warning)(request, message % {"count": done})
    for sentence in refused[:10]:
        messages.error(request, sentence)
