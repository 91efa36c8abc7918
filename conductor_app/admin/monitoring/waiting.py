"""Waiting for people: the tasks that only a person can answer, whose each is, and many answered at once."""

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
from ...engine import human_tasks
from ...insight.waiting_for_people import HumanTaskView, expected_output_names, human_task_inbox, waiting_attempts
from ...models import Attempt
from ..badges import pill
from ..error_messages import require_permission, show_refusal
from ..pages import Page

SHOWN = 200
MOST_AT_ONCE = 50
ACT = "conductor.change_run"
WHOSE = {"all": gettext_lazy("All"), "mine": gettext_lazy("Mine"), "groups": gettext_lazy("My groups")}


class WaitingPage(Page):
    """What waits for a person?"""

    name, template, permission = "waiting", "ops/waiting.html", "conductor.view_run"
    title = gettext_lazy("Waiting for people")
    live_template = "ops/waiting/rows.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now, found, user = clock.now(), human_task_inbox(clock.now()), request.user
        groups = set(user.groups.values_list("name", flat=True))
        of = {
            "all": found.asks,
            "mine": [ask for ask in found.asks if ask.is_of(user.get_username())],
            "groups": [ask for ask in found.asks if ask.is_of_groups(groups)],
        }
        whose = request.GET.get("whose", "all")
        asks = of.get(whose, found.asks)
        return {
            "rows": (rows := [_row(request, ask, now) for ask in asks[:SHOWN]]),
            "tabs": [(name, word, len(of[name]), name == whose) for name, word in WHOSE.items()],
            "whose": whose,
            "is_cut": found.is_cut or len(asks) > SHOWN,
            "most": SHOWN,
            "may_act": any(row["may_act"] for row in rows),
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        try:
            _tell(request, *_answer_all(request))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:waiting"))


def current_person(request: HttpRequest) -> Actor:
    """Return the signed-in person as the one who acts."""
    return Actor(request.user.get_username(), permission_set_of(request.user.pk), request.user.pk)


def may_act(request: HttpRequest, attempt: Attempt) -> bool:
    """Whether the person may claim, hand on and answer this task: by the rule that the API asks too."""
    # ACT is the right over all runs, which the framework has read already.
    return request.user.has_perm(ACT) or can_complete_human_task(current_person(request), permission_target(attempt))


def permission_target(attempt: Attempt) -> dict[str, str]:
    """Return the task by what there are permissions over."""
    return dict(task_target(attempt.queue, attempt.domain, attempt.task.name, attempt.run_id, attempt.run.name))


def assignee_text(ask: HumanTaskView) -> str:
    """Who has it or is asked, in words."""
    to = ask.standing.assignee
    if ask.taken_by:
        return _("taken by %(who)s") % {"who": ask.taken_by}
    if to is None:
        return _("anybody")
    return _("the group %(who)s") % {"who": to.who} if to.is_group else to.who


def _row(request: HttpRequest, ask: HumanTaskView, now: int) -> dict[str, Any]:
    return {
        "ask": ask,
        "attempt": ask.attempt,
        "whose": assignee_text(ask),
        "is_overdue": ask.is_overdue(now),
        "overdue": pill("failed", _("overdue"), "late"),
        "is_simple": is_simple(ask),
        "may_act": may_act(request, ask.attempt),
    }


def is_simple(ask: HumanTaskView) -> bool:
    """Whether it can be answered together with others: no later step reads anything of its output."""
    return not expected_output_names(ask.attempt.run.plan_id, ask.attempt.task.ref)


def _answer_all(request: HttpRequest) -> tuple[int, list[str]]:
    """Answer each of the chosen, in its own transaction; one that refuses does not hold up the others."""
    chosen = list(dict.fromkeys(request.POST.getlist("attempt")))[: MOST_AT_ONCE + 1]
    attempts = list(waiting_attempts().filter(pk__in=chosen))
    if not any(may_act(request, attempt) for attempt in attempts):
        require_permission(request, ACT)
    outcome, reason = request.POST.get("outcome", ""), request.POST.get("reason", "").strip()
    if not reason:
        raise Invalid(_("Many at once are answered with a reason only."))
    if not chosen or len(chosen) > MOST_AT_ONCE:
        raise Invalid(_("Choose from 1 to %(most)s tasks.") % {"most": MOST_AT_ONCE})
    done, refused = 0, []
    for attempt in attempts:
        try:
            if not may_act(request, attempt):
                require_completion_right(current_person(request), permission_target(attempt))
            if outcome == "COMPLETED" and expected_output_names(attempt.run.plan_id, attempt.task.ref):
                raise Invalid(_("Later steps read its output: answer it by itself."))
            human_tasks.resolve_task(attempt.run_id, attempt.pk, outcome, request.user.get_username(), {}, reason)
            done += 1
        except RequestRefused as why:
            refused.append(f"{attempt.task} ({attempt.run.name}): {why.message}")
    return done, refused


def _tell(request: HttpRequest, done: int, refused: list[str]) -> None:
    said = ngettext("%(count)s task is answered.", "%(count)s tasks are answered.", done)
    (messages.success if done else messages.warning)(request, said % {"count": done})
    for sentence in refused[:10]:
        messages.error(request, sentence)
