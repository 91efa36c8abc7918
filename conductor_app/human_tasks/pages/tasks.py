"""Pages of human tasks: the list, and one task with its form and comments."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.authentication import Actor, task_target
from ...access.permissions import name_field, permission_set_of
from ...core.errors import AlreadyResolved, Invalid, NotFound, OutputInvalid, RequestRefused
from ...core.schemas import format_value
from ...core.states import COMPLETED
from ...core.step_types.waiting import Human
from ...db.fields import user_key
from ...definitions.store import parsed_definition
from ...runs.models import Attempt
from ...runs.queries.recent import RunKey, keys_of
from ...tasks.pages.task_panel import attempts_for_panel, origin_views, without_question
from ...utils import clock
from ...utils.formatting import MINUTE
from ...web.badges import format_status, render_pill
from ...web.documents import payload_documents
from ...web.forms import AS_FORM, AS_JSON, DocumentForm, RenderedField
from ...web.links import run_address
from ...web.pages import ObjectPage, Page, show_refusal
from .. import commands
from ..commands import can_complete_human_task
from ..models import HumanTask
from ..waiting_queries import (
    COMPLETION_RIGHTS,
    OPEN_HUMAN_TASKS,
    VIEW_RIGHTS,
    HumanTaskView,
    assignee_text,
    expected_output_names,
    guessed_schema,
    human_decision,
    human_task_inbox,
    human_task_view,
    output_schema,
    resolving_entry,
    task_comments,
    visible_human_tasks,
)

MAX_SHOWN = 200
VIEW_PERMISSION, ACT_PERMISSION = "conductor.view_run", "conductor.change_run"
INBOX_TABS = {"all": gettext_lazy("All"), "mine": gettext_lazy("Mine"), "groups": gettext_lazy("My groups")}


class HumanTasksPage(Page):
    """List of open human tasks."""

    name, template, permission = "human_tasks", "ops/human_tasks/list.html", VIEW_PERMISSION
    shows_granted_rows = True
    title = gettext_lazy("Human tasks")
    live_template = "ops/human_tasks/rows.html"

    def is_open_to(self, request: HttpRequest) -> bool:
        return super().is_open_to(request) or _may_see_some_task(request)

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now, found, user = clock.now(), human_task_inbox(clock.now()), request.user
        groups, text = set(user.groups.values_list("name", flat=True)), request.GET.get("q", "").strip()
        keys, person = keys_of([each.attempt.own_run for each in found.task_views]), current_person(request)
        matching = [task_view for task_view in found.task_views if _has_text(task_view, text.casefold(), keys)]
        tasks_by_tab = {
            "all": matching,
            "mine": [task_view for task_view in matching if task_view.is_for_user(user.get_username())],
            "groups": [task_view for task_view in matching if task_view.is_for_groups(groups)],
        }
        selected_tab = request.GET.get("assigned", "all")
        task_views = tasks_by_tab.get(selected_tab, matching)
        return {
            "rows": [
                _task_row(task_view, now) | {"may_act": may_act(request, task_view.attempt, person)}
                for task_view in task_views[:MAX_SHOWN]
            ],
            "run_keys": keys,
            "tabs": [(name, word, len(tasks_by_tab[name]), name == selected_tab) for name, word in INBOX_TABS.items()],
            "selected_tab": selected_tab,
            "text": text,
            "is_cut": found.is_cut or len(task_views) > MAX_SHOWN,
            "most": MAX_SHOWN,
        }


def current_person(request: HttpRequest) -> Actor:
    """Return the user as the actor of a command."""
    user_id = user_key(request.user.pk or 0)
    return Actor(request.user.get_username(), permission_set_of(user_id), user_id)


def _may_see_some_task(request: HttpRequest) -> bool:
    """Return True if a grant shows the user human tasks. The API shows the same tasks."""
    granted = current_person(request).permissions.names
    return any(right in granted for right in (*VIEW_RIGHTS, *COMPLETION_RIGHTS))


def may_act(request: HttpRequest, attempt: Attempt, person: Actor | None = None) -> bool:
    """Return True if the user may claim, reassign and complete the task. The API applies the same rule."""
    # ACT grants access to all runs. Django has already loaded it.
    return request.user.has_perm(ACT_PERMISSION) or can_complete_human_task(
        person or current_person(request),
        dict(task_target(attempt.queue, attempt.domain, attempt.task.name, attempt.run_id or "", attempt.own_run.name)),
    )


def _has_text(task_view: HumanTaskView, text: str, keys: Mapping[str, RunKey]) -> bool:
    """Return True if what the list shows of a task contains a text, in lower case."""
    run = task_view.attempt.own_run
    key = keys[run.pk].text if run.pk in keys else ""
    shown = (task_view.title, task_view.question.text, run.name, key, assignee_text(task_view))
    return any(text in each.casefold() for each in shown)


def _task_row(task_view: HumanTaskView, now: int) -> dict[str, Any]:
    return {
        "ask": task_view,
        "attempt": task_view.attempt,
        "assignee": assignee_text(task_view),
        "is_overdue": task_view.is_overdue(now),
        "overdue": render_pill("failed", _("overdue"), "late"),
    }


MAX_NAMES = 200
BACK_TO_RUN = "run"
"""Value of the parameter `back` in links from the page of a run."""
COMMENT_LABELS = {
    "comment_task": gettext_lazy("commented"),
    "claim_task": gettext_lazy("claimed the task"),
    "release_task": gettext_lazy("released the task"),
    "reassign_task": gettext_lazy("reassigned the task to %(to)s"),
    "skip_assignment": gettext_lazy("skipped %(from)s"),
}


class AnswerForm(DocumentForm):
    """Output of the task: a form from its schema, otherwise JSON with the names that later steps read."""

    def __init__(self, attempt: Attempt, submitted: Mapping[str, str] | None = None) -> None:
        self.expected = expected_output_names(attempt.own_run.resolved_definition_id, attempt.task.ref)
        schema = output_schema(attempt, attempt.input)
        definition = parsed_definition(attempt.own_run.resolved_definition_id)
        self.decision = human_decision(definition.document, attempt.task.ref, schema) if definition else None
        if self.decision and not schema:
            schema = guessed_schema(self.decision, self.expected)
        if self.decision and submitted is not None and "decision" in submitted:
            submitted = {**dict(submitted.items()), f"output.{self.decision.field}": submitted["decision"]}
        saved = commands.load_output(attempt) if submitted is None else {}
        blank = dict.fromkeys(self.expected)
        super().__init__("output", _("Output"), schema, submitted, given=saved, blank=blank)

    @property
    def decision_buttons(self) -> list[tuple[str, str, str]]:
        """Return value, label and style of the buttons that decide and complete the task."""
        if self.decision is None or self.mode != AS_FORM:
            return []
        yes, no = (format_value(value) for value in self.decision.values)
        if self.decision.is_approval:
            return [(yes, _("Approve"), "default"), (no, _("Reject"), "destructive")]
        if self.decision.values == (True, False):
            label = self.decision.label
            texts = _("%(field)s: yes") % {"field": label}, _("%(field)s: no") % {"field": label}
        else:
            texts = (yes, no)
        return [(yes, texts[0], "plain"), (no, texts[1], "plain")]

    def pressed_button(self, value: str) -> str:
        """Return the label of the button that submits this decision, or "" if there is none."""
        return next((label for each, label, _css in self.decision_buttons if each == value), "")

    def fields_beside_buttons(self) -> list[RenderedField]:
        """Return the fields of the form, without the one that the buttons fill in."""
        decided = f"output.{self.decision.field}" if self.decision and self.decision_buttons else ""
        return [each for each in self.rendered_fields() if each.field.name != decided or each.errors]


class HumanTaskAnswerPage(ObjectPage):
    """Page of one human task."""

    name, template, permission = "human_task", "ops/human_tasks/task.html", VIEW_PERMISSION
    shows_granted_rows = True
    route = "human-tasks/<str:id>/"

    def is_open_to(self, request: HttpRequest) -> bool:
        return super().is_open_to(request) or _may_see_some_task(request)

    def get_context(self, request: HttpRequest, id: str) -> dict[str, Any]:
        attempt = _find_attempt(id, is_open=False)
        if attempt.ended_at is not None:
            return _ended_context(request, attempt)
        attempt = _find_attempt(id)
        return _page_context(request, attempt, AnswerForm(attempt))

    def handle_post(self, request: HttpRequest, id: str) -> HttpResponse | dict[str, Any]:
        """Handle a form of the page.

        Raises:
            PermissionDenied: when the user may not act on the task.
        """
        attempt, act = _find_attempt(id, is_open=False), ACTIONS.get(request.POST.get("do", ""))
        if not may_act(request, attempt):
            raise PermissionDenied(ACT_PERMISSION)
        if attempt.ended_at is not None:
            return _ended_context(request, attempt)
        if act is None:
            return _handle_answer(request, attempt)
        try:
            messages.success(request, act(request, attempt.task_id))
        except RequestRefused as refused:
            show_refusal(request, refused, (_("Open run"), run_address(attempt.run_id or "")))
        return HttpResponseRedirect(request.get_full_path())


def _page_context(request: HttpRequest, attempt: Attempt, answer: AnswerForm) -> dict[str, Any]:
    now, user = clock.now(), request.user
    task_view = human_task_view(attempt, attempt.input, HumanTask.objects.filter(pk=attempt.task_id).first(), now)
    return {
        "title": _("Human task: %(task)s") % {"task": task_view.title},
        "ask": task_view,
        "assignee": assignee_text(task_view),
        "is_overdue": task_view.is_overdue(now),
        "is_mine": bool(task_view.claimed_by) and not task_view.is_claimed_by_other(user.get_username()),
        "is_claimed_by_other": task_view.is_claimed_by_other(user.get_username()),
        "has_next": task_view.assignment.assignee is not None
        and len(task_view.assignees) > task_view.assignment.escalated + 1,
        "attempt": attempt,
        "run_keys": keys_of([attempt.own_run]),
        "run_status": format_status(attempt.own_run.status),
        "run_address": f"{run_address(attempt.run_id or '')}?task={attempt.task}",
        "answer": answer,
        "fields": answer.fields_beside_buttons(),
        "expected": answer.expected,
        "comments": [(entry, _comment_text(entry)) for entry in task_comments(attempt)],
        **_possible_assignees(request),
        "documents": payload_documents(without_question(attempt), ("input",)),
        "origins": origin_views(attempt),
        "may_act": may_act(request, attempt),
        "permission": ACT_PERMISSION,
    }


def _possible_assignees(request: HttpRequest) -> dict[str, Any]:
    """Return the people and groups that the menu offers: all, or those of the own groups if only grants show tasks."""
    users, groups = (
        get_user_model()._default_manager.filter(is_active=True).order_by(name_field()),
        Group.objects.order_by("name"),
    )
    if not request.user.has_perm(VIEW_PERMISSION):
        groups = groups.filter(user=request.user.pk)
        users = users.filter(Q(pk=request.user.pk) | Q(groups__in=groups.order_by())).distinct()
    return {"users": users[:MAX_NAMES], "groups": groups[:MAX_NAMES]}


def _handle_answer(request: HttpRequest, attempt: Attempt) -> HttpResponse | dict[str, Any]:
    """Complete the task, and return to the list or to the run. A rejected answer is shown again with its errors."""
    answer = AnswerForm(attempt, request.POST)
    if answer.has_switched:
        return _page_context(request, attempt, answer)
    try:
        outcome = _resolve_task(request, attempt, answer)
    except AlreadyResolved:
        return _ended_context(request, _find_attempt(attempt.pk, is_open=False))
    except OutputInvalid as refused:
        for each in refused.validation_errors:
            answer.add_error(each.path, each.message)
        messages.error(request, _("Not saved: the output does not match its schema."))
    except RequestRefused as refused:
        show_refusal(request, refused, (_("Open run"), run_address(attempt.run_id or "")))
    else:
        is_of_run, address = request.GET.get("back") == BACK_TO_RUN, run_address(attempt.run_id or "")
        link = "" if is_of_run else format_html(' <a href="{}">{}</a>', address, _("Open run"))
        level, text = _outcome_message(attempt, answer, outcome, request.POST.get("decision", ""))
        messages.add_message(request, level, format_html("{}{}", text, link))
        return HttpResponseRedirect(address if is_of_run else reverse("admin:human_tasks"))
    return _page_context(request, attempt, answer)


def _ended_context(request: HttpRequest, attempt: Attempt) -> dict[str, Any]:
    """Return the context of the page of a task that has ended: how it ended, and what was typed and is not saved."""
    typed = [
        f"{name.removeprefix('output.')}: {text}"
        for name, text in request.POST.items()
        if str(text).strip() and name.partition(".")[0] in ("output", "decision", "reason")
    ]
    return {
        "template": "ops/human_tasks/ended.html",
        "status_code": 409 if request.method == "POST" else 200,
        "is_refused": request.method == "POST",
        "title": _("Human task: %(task)s") % {"task": attempt.task},
        "attempt": attempt,
        "status": format_status(attempt.status),
        "entry": resolving_entry(attempt),
        "documents": payload_documents(attempt, ("output",)),
        "run_address": f"{run_address(attempt.run_id or '')}?task={attempt.task}",
        "typed": "\n".join(typed),
    }


def _outcome_message(attempt: Attempt, answer: AnswerForm, outcome: str, decision: str) -> tuple[int, str]:
    """Return the level and the text of the message about a task that the user has resolved."""
    level, text = messages.SUCCESS, _("Completed %(task)s of %(run)s.")
    label = answer.pressed_button(decision) if outcome == COMPLETED else ""
    if outcome != COMPLETED:
        text = _("Marked %(task)s of %(run)s as failed.")
    elif label and answer.decision and answer.decision.is_approval:
        is_approved = decision == format_value(answer.decision.values[0])
        level = messages.SUCCESS if is_approved else messages.INFO
        text = _("Approved %(task)s of %(run)s.") if is_approved else _("Rejected %(task)s of %(run)s.")
    elif label:
        text = _("Completed %(task)s of %(run)s with “%(button)s”.")
    run = attempt.own_run
    return level, text % {"task": str(attempt.task), "run": run.correlation_id or run.name, "button": label}


def _resolve_task(request: HttpRequest, attempt: Attempt, answer: AnswerForm) -> str:
    """Resolve the task as the form requests, and return the outcome."""
    if not answer.is_valid():
        raise Invalid(
            _("The output must be a JSON object.")
            if answer.mode == AS_JSON
            else _("The form has errors. See its fields.")
        )
    outcome = COMPLETED if "decision" in request.POST else request.POST.get("outcome", "")
    by, reason = request.user.get_username(), _parse_reason(request)
    commands.resolve_task(
        attempt.run_id or "",
        attempt.pk,
        outcome,
        by,
        dict(answer.document),
        reason,
        decision=answer.pressed_button(request.POST.get("decision", "")),
    )
    return outcome


def _claim_task(request: HttpRequest, task_id: str) -> str:
    commands.claim_task(task_id, request.user.get_username(), _parse_reason(request))
    return _("Claimed.")


def _release_task(request: HttpRequest, task_id: str) -> str:
    commands.release_task(task_id, request.user.get_username(), _parse_reason(request))
    return _("Released.")


def _delegate_task(request: HttpRequest, task_id: str) -> str:
    kind, _sign, to = request.POST.get("to", "").partition(":")
    minutes = request.POST.get("minutes", "").strip()
    if minutes and (not minutes.isdecimal() or len(minutes) > 6):
        raise Invalid(_("Enter a whole number of minutes (got %(text)r).") % {"text": minutes[:40]})
    due_at = clock.now() + int(minutes) * MINUTE if minutes else None
    by, is_group = request.user.get_username(), kind == "group"
    commands.delegate_task(task_id, to, by, _parse_reason(request), is_group=is_group, due_at=due_at)
    return _("Reassigned to %(assignee)s.") % {"assignee": to}


def _skip_assignment(request: HttpRequest, task_id: str) -> str:
    commands.skip_assignment(task_id, request.user.get_username(), _parse_reason(request))
    return _("Assigned to the next person.")


def _add_comment(request: HttpRequest, task_id: str) -> str:
    commands.add_comment(task_id, request.POST.get("reason", ""), request.user.get_username())
    return _("Comment saved.")


ACTIONS: dict[str, Callable[[HttpRequest, str], str]] = {
    "take": _claim_task,
    "put_back": _release_task,
    "hand_on": _delegate_task,
    "skip": _skip_assignment,
    "comment": _add_comment,
}


def _parse_reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()[:500]


def _comment_text(entry: Any) -> str:
    return str(COMMENT_LABELS[entry.action]) % {name: entry.facts.get(name, "") for name in ("to", "from")}


def _find_attempt(id: str, *, is_open: bool = True) -> Attempt:
    found = visible_human_tasks(attempts_for_panel()).filter(pk=id, task__type=Human.type)
    attempt = (found.filter(task__in=OPEN_HUMAN_TASKS) if is_open else found).first()
    if attempt is None:
        raise NotFound(_("No such open human task."))
    return attempt
