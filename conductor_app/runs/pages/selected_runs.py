"""One action on selected runs: a page that asks for a reason, then the result for each run."""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.visibility import may
from ...bulk.commands import needs_approval
from ...bulk.queries import ACTION_LABELS
from ...core.errors import RequestRefused
from ...utils.formatting import LazyText
from ...web.badges import render_badge
from ...web.pages import show_refusal
from ..models import Run
from ..queries.recent import keys_of
from .actions import RunAction
from .filters import list_parameters

log = logging.getLogger(__name__)

MAX_RUNS = 500
"""Maximum number of runs that one request changes."""


@dataclass(frozen=True, slots=True)
class BulkRunResult:
    """Result of the action on one run."""

    run: Run
    is_done: bool
    answer: str


MAIN_BUTTONS = {
    "retry": "do-retry",
    "pause": "do-pause",
    "resume": "do-resume",
    "terminate": "do-terminate",
    "label": "",
}
"""The actions that the bar of a selection shows as buttons, with their icons. The others are in its menu."""


def selection_buttons(allowed: Collection[str]) -> dict[str, list[tuple[str, str, str]]]:
    """Return name, label and icon of the actions on a selection: those shown as buttons, and those in the menu."""
    found = [(name, str(ACTION_LABELS[name]), MAIN_BUTTONS.get(name, "")) for name in allowed if name in ACTION_LABELS]
    main = sorted(
        (each for each in found if each[0] in MAIN_BUTTONS), key=lambda each: list(MAIN_BUTTONS).index(each[0])
    )
    return {"main": main, "more": [each for each in found if each[0] not in MAIN_BUTTONS]}


def make_bulk_action(action: RunAction) -> Callable[..., HttpResponse]:
    """Return the action for Django's changelist."""

    @admin.action(
        description=format_lazy(gettext_lazy("{action} the selected runs"), action=action.label),
        permissions=["operate"],
    )
    def act(model_admin: admin.ModelAdmin, request: HttpRequest, runs: QuerySet[Run]) -> HttpResponse:
        if request.POST.get("select_across") == "1":
            return _redirect_to_plan_of_list(request, action.name)
        selected = list(runs.order_by("-created_at")[: MAX_RUNS + 1])
        if needs_approval({"ids": [run.pk for run in selected]}):
            return _redirect_to_plan(action.name, {"ids": ",".join(run.pk for run in selected[:MAX_RUNS])})
        if "confirmed" not in request.POST:
            return _render_confirmation(model_admin, request, action, selected)
        results = [_apply_to_run(action, run, request) for run in selected[:MAX_RUNS]]
        return _render_results(model_admin, request, action, results)

    act.__name__ = action.name
    return act


def make_planned_action(name: str, description: str | LazyText) -> Callable[..., HttpResponseRedirect]:
    """Return an action for Django's changelist that redirects to the plan of a bulk operation."""

    @admin.action(description=description, permissions=["operate"])
    def act(model_admin: admin.ModelAdmin, request: HttpRequest, runs: QuerySet[Run]) -> HttpResponseRedirect:
        if request.POST.get("select_across") == "1":
            return _redirect_to_plan_of_list(request, name)
        ids = runs.order_by("-created_at").values_list("pk", flat=True)[:MAX_RUNS]
        return _redirect_to_plan(name, {"ids": ",".join(ids)})

    act.__name__ = name
    return act


def _redirect_to_plan_of_list(request: HttpRequest, action: str) -> HttpResponseRedirect:
    """Redirect to the plan for all runs that the list shows."""
    try:
        return _redirect_to_plan(action, list_parameters(request.GET))
    except RequestRefused as refused:
        show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:conductor_run_changelist"))


def _redirect_to_plan(action: str, selection: dict[str, str]) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("admin:bulk_plan", query={**selection, "action": action}))


def _render_confirmation(
    model_admin: admin.ModelAdmin, request: HttpRequest, action: RunAction, selected: list[Run]
) -> TemplateResponse:
    rows = [(run, render_badge(run.status), _is_possible(request, action, run)) for run in selected[:MAX_RUNS]]
    possible = sum(is_possible for *_, is_possible in rows)
    return _render_page(
        model_admin,
        request,
        action,
        "confirm",
        rows=rows,
        possible=possible,
        run_keys=keys_of(selected[:MAX_RUNS]),
        is_cut=len(selected) > MAX_RUNS,
        most=MAX_RUNS,
    )


def _is_possible(request: HttpRequest, action: RunAction, run: Run) -> bool:
    return action.is_possible(run.status) and may(request.user, action.permission, run)


def _render_results(
    model_admin: admin.ModelAdmin, request: HttpRequest, action: RunAction, results: list[BulkRunResult]
) -> TemplateResponse:
    done = sum(result.is_done for result in results)
    counts = {"done": done, "refused": len(results) - done}
    runs = [result.run for result in results]
    return _render_page(model_admin, request, action, "outcome", results=results, run_keys=keys_of(runs), **counts)


def _render_page(
    model_admin: admin.ModelAdmin, request: HttpRequest, action: RunAction, name: str, **extra_context: object
) -> TemplateResponse:
    title = _("%(action)s runs") % {"action": action.label}
    context = {**model_admin.admin_site.each_context(request), "title": title, "action": action, "opts": Run._meta}
    context |= {"checkbox_name": ACTION_CHECKBOX_NAME, **extra_context}
    return TemplateResponse(request, f"ops/bulk/{name}.html", context)


def _apply_to_run(action: RunAction, run: Run, request: HttpRequest) -> BulkRunResult:
    """Apply the action to one run. An unexpected error becomes a result, so that the other runs are still processed."""
    reason = request.POST.get("reason", "").strip()
    if not may(request.user, action.permission, run):
        return BulkRunResult(run, False, _("You may not change this run."))
    try:
        action.command(run.pk, request.user.get_username(), reason, **action.parse_options(request.POST))
    except RequestRefused as refused:
        return BulkRunResult(run, False, refused.message)
    except Exception:
        log.exception("bulk_action_failed", extra={"action": action.name, "run": run.pk})
        return BulkRunResult(run, False, _("Internal error. See the server log."))
    return BulkRunResult(run, True, str(action.done))
