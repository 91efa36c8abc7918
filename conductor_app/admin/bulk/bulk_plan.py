"""The form that plans and starts a bulk operation: selection, action, canary and rate."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import Invalid, RequestRefused
from ...core.states import RUNNING
from ...engine import bulk
from ...engine.bulk import BulkRequest
from ...engine.bulk.bulk_commands import ACTIONS
from ...engine.bulk.item_actions import LABELLING
from ...engine.runs.skip_and_jump import upgrade_obstacles
from ...insight.bulk import selections
from ...insight.bulk.bulk_operations import count_selection
from ...models import BulkOperation
from ..error_messages import require_permission, show_refusal
from ..object_pages import ObjectPage
from ..runs import run_filters
from ..runs.run_actions import RUN_ACTIONS

PERMISSION = "conductor.change_run"
MAX_CHECKED_RUNS = 50
"""Maximum number of runs that are checked individually for an upgrade."""
MAX_REASONS = 10
NUMBER_FIELDS = ("version", "failure_group", "least_ms", "most_ms", *selections.MOMENTS)
LIST_FIELDS = ("ids", "status")
ACTION_DESCRIPTIONS = {name: action.sentence for name, action in RUN_ACTIONS.items()} | {
    "rerun": gettext_lazy("Restarts each run from the beginning with the same id and input."),
    "upgrade": gettext_lazy(
        "Continues each active run with the newest version of its definition. Runs that cannot be upgraded are "
        "rejected with the reason."
    ),
    "label": gettext_lazy("Adds these labels to each run. Execution is not affected."),
    "unlabel": gettext_lazy("Removes these labels from each run. Execution is not affected."),
}
ACTION_LABELS = {
    "retry": gettext_lazy("Retry"),
    "rerun": gettext_lazy("Rerun"),
    "restart": gettext_lazy("Restart"),
    "pause": gettext_lazy("Pause"),
    "resume": gettext_lazy("Resume"),
    "terminate": gettext_lazy("Terminate"),
    "upgrade": gettext_lazy("Upgrade"),
    "label": gettext_lazy("Add labels"),
    "unlabel": gettext_lazy("Remove labels"),
}
ACTION_OPTIONS = {name: action.options for name, action in RUN_ACTIONS.items()} | {
    "restart": (("latest", gettext_lazy("Use the newest version of the definition")),),
}


def parse_selection(form_data: QueryDict) -> dict[str, Any]:
    """Parse the selection of an address or a form.

    Raises:
        Invalid: when a filter is invalid.
    """
    found: dict[str, Any] = {}
    for name in selections.FILTERS:
        values = [value for value in form_data.getlist(name) if value]
        if name in LIST_FIELDS:
            found[name] = [part for value in values for part in value.split(",") if part]
        elif values:
            found[name] = _parse_number(values[0], name) if name in NUMBER_FIELDS else values[0].replace("\0", "")
    return selections.clean_selection(found)


def list_parameters(form_data: QueryDict) -> dict[str, str]:
    """Return the parameters of the plan for all runs that a filtered list of runs shows.

    Raises:
        Invalid: when a filter is invalid.
    """
    return selection_parameters(run_filters.parse_selection(form_data))


def selection_parameters(selection: Mapping[str, Any]) -> dict[str, str]:
    """Return a selection as parameters of the plan's address."""
    return {name: ",".join(value) if name in LIST_FIELDS else str(value) for name, value in selection.items()}


class BulkPlanPage(ObjectPage):
    """Page that plans a bulk operation."""

    name, template, permission = "bulk_plan", "ops/bulk/plan.html", "conductor.view_run"
    route = "bulk/plan/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        return self._plan_context(request, request.GET)

    def handle_post(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse | dict[str, Any]:
        require_permission(request, PERMISSION)
        try:
            id = bulk.start(_parse_form(request.POST), request.user.get_username())
        except RequestRefused as refused:
            show_refusal(request, refused)
            return self._plan_context(request, request.POST)
        if BulkOperation.objects.get(pk=id).needs_approval:
            messages.success(request, _("Saved. The operation starts when another operator approves it."))
        else:
            messages.success(request, _("Started. It continues in the background."))
        return HttpResponseRedirect(reverse("admin:bulk_operation", args=[id]))

    def _plan_context(self, request: HttpRequest, form_data: QueryDict) -> dict[str, Any]:
        action = form_data.get("action", "retry")
        context = {
            "title": _("New bulk operation"),
            "action": action if action in ACTIONS else "retry",
            "actions": [(name, ACTION_LABELS[name]) for name in ACTIONS],
            "label": ACTION_LABELS.get(action, ACTION_LABELS["retry"]),
            "sentence": ACTION_DESCRIPTIONS.get(action, ""),
            "options": ACTION_OPTIONS.get(action, ()),
            "is_labelling": action in LABELLING,
            "given": form_data,
            "may_act": request.user.has_perm(PERMISSION),
            "permission": PERMISSION,
        }
        try:
            selection = parse_selection(form_data)
            found = count_selection(selection)
        except RequestRefused as refused:
            return context | {"refused": refused.message}
        fields = [(name, ",".join(value) if name in LIST_FIELDS else str(value)) for name, value in selection.items()]
        return context | {
            "words": selections.describe_selection(selection),
            "selected": found,
            "fields": fields,
            "needs_approval": bulk.needs_approval(selection),
            "moves": _upgrade_summary(selection) if action == "upgrade" and "check" in form_data else None,
        }


def _upgrade_summary(selection: dict[str, Any]) -> dict[str, Any]:
    """Check the newest active runs: how many can be upgraded, and why the others cannot."""
    running = selections.selected_runs(selection).filter(status=RUNNING).order_by("-pk")
    obstacles = upgrade_obstacles(running.values_list("pk", flat=True)[:MAX_CHECKED_RUNS])
    reasons: dict[str, list[str]] = {}
    for run_id, problems in obstacles.items():
        for problem in problems:
            reasons.setdefault(problem.replace(run_id, "…"), []).append(run_id)
    ranked_reasons = sorted(reasons.items(), key=lambda pair: -len(pair[1]))
    return {
        "checked_count": len(obstacles),
        "can": sum(not problems for problems in obstacles.values()),
        "reasons": [(reason, len(ids), ids[0]) for reason, ids in ranked_reasons[:MAX_REASONS]],
    }


def _parse_form(form_data: QueryDict) -> BulkRequest:
    action = form_data.get("action", "")
    return BulkRequest(
        action=action,
        selection=parse_selection(form_data),
        reason=form_data.get("reason", "").strip()[:2000],
        options={name: name in form_data for name, _ in ACTION_OPTIONS.get(action, ())},
        labels=[label for label in form_data.get("labels", "").split(",") if label.strip()],
        excluded=form_data.get("excluded", "").replace(",", " ").split(),
        rate=_parse_rate(form_data.get("rate", "")),
        canary_size=_parse_number(form_data.get("canary_size", "") or "0", _("canary size")),
        canary_share=_parse_number(form_data.get("canary_share", "") or "100", _("success rate")),
    )


def _parse_rate(text: str) -> float:
    try:
        return float(text or 50)
    except ValueError as error:
        raise Invalid(_("Not a valid rate: %(text)s.") % {"text": repr(text[:40])}) from error


def _parse_number(text: str, name: str) -> int:
    if not text.isdecimal() or len(text) > 15:
        raise Invalid(
            _("Not a valid integer for %(name)s: %(text)s.") % {"text": repr(text[:40]), "name": name.replace("_", " ")}
        )
    return int(text)
