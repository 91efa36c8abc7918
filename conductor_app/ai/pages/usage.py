"""The page of the indexes of vectors, and what other pages show about calls of models."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.permissions import INTEGRATION_PROVIDER
from ...access.visibility import visible_names
from ...core.definition import structure_of
from ...core.errors import RequestRefused
from ...definitions.pages.workflows import register_model_use
from ...runs.models import Attempt, Run
from ...runs.pages.view_model import ModelUse, register_use_of_run
from ...tasks.pages.task_panel import PanelSection, add_section
from ...utils.formatting import DAY, format_count, format_duration
from ...web.badges import render_pill
from ...web.pages import Page, require_permission, show_refusal
from ..commands.vectors import Place, delete_index
from ..models import ModelCall
from ..queries.budgets import format_cost, format_tokens, run_budget_share
from ..queries.usage import UsageSums, calls_of_attempt, usage_of_definition, usage_of_run
from ..queries.vectors import MAX_INDEXES, list_indexes

DELETE_PERMISSION = "conductor.delete_vectordocument"
RUN_USES_MODELS = Exists(ModelCall.objects.filter(run_id=OuterRef("pk"))) | Exists(
    ModelCall.objects.filter(root_id=OuterRef("pk"))
)
"""The condition on a run that it or a run below it has called a model."""


class VectorIndexesPage(Page):
    """Page of the indexes of vectors."""

    name, title, template = "vector_indexes", gettext_lazy("Vector indexes"), "ops/ai/vector_indexes.html"
    permission = "conductor.view_vectordocument"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        indexes = list_indexes()
        if not request.user.has_perm(self.permission):
            databases = visible_names(INTEGRATION_PROVIDER, {each.database for each in indexes})
            indexes = [each for each in indexes if each.database in databases]
        return {
            "indexes": indexes,
            "is_cut": len(indexes) == MAX_INDEXES,
            "may_delete": request.user.has_perm(DELETE_PERMISSION),
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        require_permission(request, DELETE_PERMISSION)
        form_data, by = request.POST, request.user.get_username()
        place = Place(form_data.get("database", ""), form_data.get("index", ""), form_data.get("namespace", ""))
        try:
            count = delete_index(place, by)
            deleted = ngettext("%(count)s document deleted.", "%(count)s documents deleted.", count)
            messages.success(request, deleted % {"count": format_count(count)})
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:vector_indexes"))


def show_model_use() -> None:
    """Add what calls of models have used to the pages of runs, tasks and workflows."""
    register_use_of_run(ModelUse(RUN_USES_MODELS, model_use_of_run))
    register_model_use(model_use_of_workflow)
    add_section(model_calls_section)


def model_use_of_run(run: Run) -> str:
    """Return the calls, tokens and cost of a run and those below it, and the spent share of its budget, if any."""
    root_id = run.root_id or run.pk
    line = describe_usage(usage_of_run(run.pk, root_id))
    share = run_budget_share(run.pk, run.name, root_id)
    if share is None:
        return line
    return _("%(usage)s (%(percent)s %% of its budget)") % {"usage": line, "percent": int(share * 100)}


def model_use_of_workflow(name: str, now: int) -> str:
    """Return the calls, tokens and cost of the runs of a workflow in 30 days, or an empty text without calls."""
    sums = usage_of_definition(name, now - 30 * DAY)
    return describe_usage(sums) if sums.calls else ""


def describe_usage(sums: UsageSums) -> str:
    """Return sums in one line, such as `12 calls, 34,000 tokens, $0.12`."""
    calls = ngettext("%(count)s call", "%(count)s calls", sums.calls)
    count = format_count(sums.calls)
    return ", ".join([calls % {"count": count}, format_tokens(sums.tokens), format_cost(sums.cost)])


@dataclass(frozen=True, slots=True)
class ModelCallView:
    """One call of a model. `notes`: sentences about what an operator should know."""

    call: ModelCall
    status: SafeString
    tokens: str
    cost: str
    duration: str
    notes: list[str]


def model_calls_section(attempt: Attempt) -> PanelSection | None:
    """Return the calls of an attempt, oldest first, or None if it has made none."""
    if not structure_of(attempt.task.type).calls_models:
        return None
    calls = [_view_of(call) for call in calls_of_attempt(attempt.pk)]
    return PanelSection("ops/ai/model_calls.html", calls) if calls else None


def _view_of(call: ModelCall) -> ModelCallView:
    tokens = ""
    if call.prompt_tokens or call.completion_tokens:
        tokens = _("%(sent)s sent, %(received)s received") % {
            "sent": format_count(call.prompt_tokens),
            "received": format_count(call.completion_tokens),
        }
    return ModelCallView(
        call,
        _status_pill(call.status),
        tokens,
        format_cost(call.cost) if call.cost else "",
        format_duration(call.ended_at - call.started_at) if call.ended_at and call.status != "LOST" else "",
        _notes(call),
    )


def _status_pill(status: str) -> SafeString:
    tone, label = {
        "STARTED": ("active", _("Open")),
        "REPLIED": ("succeeded", _("Replied")),
        "FAILED": ("failed", _("Failed")),
        "LOST": ("failed", _("Reply lost")),
    }.get(status, ("waiting", status))
    return render_pill(tone, label)


def _notes(call: ModelCall) -> list[str]:
    if call.status == "LOST":
        return [_("The process ended before the reply arrived. This call may have been paid in addition.")]
    if call.reused_at:
        return [_("The stored reply was used after the process had ended. It was paid once.")]
    return [call.error] if call.error else []
