"""Pages of what calls of models use and of the indexes of vectors, and what pages of runs show about calls."""

from collections.abc import Mapping, Sequence
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
from ...access.visibility import visible_names, visible_run_names
from ...core.definition import structure_of
from ...core.errors import RequestRefused
from ...definitions.pages.workflows import register_model_use
from ...runs.models import Attempt, Run
from ...runs.pages.view_model import ModelUse, register_use_of_run
from ...runs.queries.recent import run_keys
from ...tasks.pages.task_panel import PanelSection, add_section
from ...utils import clock
from ...utils.formatting import (
    DAY,
    DAY_RANGE,
    TimeRange,
    format_count,
    format_decimal,
    format_duration,
    format_timestamp,
)
from ...web.badges import mark_names, render_pill
from ...web.charts import ChartSeries, TrendChart, chosen_range, range_links
from ...web.pages import Page, require_permission, show_refusal
from ..commands.vectors import Place, delete_index
from ..models import ModelCall
from ..queries.budgets import BudgetState, budget_states, format_cost, format_tokens, name_budget, run_budget_share
from ..queries.usage import (
    FILTERS,
    UsageReport,
    UsageRow,
    UsageSums,
    calls_of_attempt,
    usage_of_definition,
    usage_of_run,
    usage_report,
)
from ..queries.vectors import MAX_INDEXES, list_indexes

USAGE_PERMISSION = "conductor.view_modelusage"
FILTER_LABELS = {
    "integration": gettext_lazy("Integration"),
    "model": gettext_lazy("Model"),
    "definition": gettext_lazy("Workflow"),
    "caller": gettext_lazy("Caller"),
}
CHART_LABELS = {
    "cost": gettext_lazy("Cost"),
    "tokens": gettext_lazy("Tokens"),
    "calls": gettext_lazy("Calls"),
    "duration": gettext_lazy("Mean duration"),
}
DELETE_PERMISSION = "conductor.delete_vectordocument"
RUN_USES_MODELS = Exists(ModelCall.objects.filter(run_id=OuterRef("pk"))) | Exists(
    ModelCall.objects.filter(root_id=OuterRef("pk"))
)
"""The condition on a run that it or a run below it has called a model."""


class UsagePage(Page):
    """Page of the usage of models."""

    name, title, template = "model_usage", gettext_lazy("Usage"), "ops/ai/usage.html"
    permission = USAGE_PERMISSION
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now, chosen = clock.now(), chosen_range(request, DAY_RANGE)
        time_range = TimeRange.aligned(chosen, now)
        filters = {name: request.GET.get(name, "")[:320] for name in FILTERS}
        definitions = None if request.user.has_perm(USAGE_PERMISSION) else visible_run_names()
        report = usage_report(time_range, filters, definitions)
        shown = request.GET.get("show", "")
        measure = shown if shown in CHART_LABELS else "cost" if report.total.cost else "tokens"
        states = budget_states(now) if request.user.has_perm("conductor.view_modelbudget") else []
        return {
            "chart": _chart(report, time_range, measure, range_links(request, chosen)),
            "measures": _measure_links(request, measure),
            "facts": _facts(report.total),
            "filters": _filter_links(request, filters),
            "warnings": [_warning(state) for state in states if state.is_nearly_spent],
            "tables": _tables(request, report),
            "runs": [(row.names[0], row.names[1], _cells(row.sums)) for row in report.runs],
            "is_cut": report.is_cut,
            "run_keys": run_keys(row.names[0] for row in report.runs),
            "is_empty": not report.total.calls,
            "is_filtered": any(filters.values()),
        }


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


def _chart(report: UsageReport, time_range: TimeRange, measure: str, ranges: Sequence[Mapping[str, Any]]) -> TrendChart:
    bars = report.bars
    if measure == "cost":
        series = [ChartSeries(str(CHART_LABELS["cost"]), "started", [bar.cost for bar in bars])]
    elif measure == "tokens":
        series = [
            ChartSeries(_("Prompt"), "started", [bar.prompt_tokens for bar in bars]),
            ChartSeries(_("Completion"), "scheduled", [bar.completion_tokens for bar in bars]),
        ]
    elif measure == "calls":
        series = [
            ChartSeries(_("With a reply"), "done", [bar.calls - bar.failures for bar in bars]),
            ChartSeries(_("Failed"), "failed", [bar.failures for bar in bars]),
        ]
    else:
        series = [ChartSeries(str(CHART_LABELS["duration"]), "started", [bar.mean_ms or 0 for bar in bars])]
    formats = {"cost": format_cost, "duration": format_duration}
    return TrendChart(
        str(CHART_LABELS[measure]),
        time_range,
        series,
        has_totals=measure in ("tokens", "calls"),
        ranges=ranges,
        format_value=formats.get(measure, format_count),
    )


def _measure_links(request: HttpRequest, current: str) -> list[dict[str, Any]]:
    links = []
    for name, label in CHART_LABELS.items():
        query = request.GET.copy()
        query["show"] = name
        links.append({"label": label, "address": f"?{query.urlencode()}", "is_current": name == current})
    return links


def _filter_links(request: HttpRequest, filters: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the filters that apply, with the address without each."""
    links = []
    for name, value in filters.items():
        if value:
            query = request.GET.copy()
            del query[name]
            links.append({"label": FILTER_LABELS[name], "value": value, "address": f"?{query.urlencode()}"})
    return links


def _facts(total: UsageSums) -> list[tuple[str, str]]:
    return [
        (_("Cost"), format_cost(total.cost)),
        (_("Tokens"), format_count(total.tokens)),
        (_("Calls"), format_count(total.calls)),
        (_("Failed calls"), _failed_calls(total)),
        (_("Mean duration"), "–" if total.mean_ms is None else format_duration(total.mean_ms)),
    ]


def _failed_calls(total: UsageSums) -> str:
    count = format_count(total.failures)
    return f"{count} ({format_decimal(100 * total.failures / total.calls)} %)" if total.failures else count


def _tables(request: HttpRequest, report: UsageReport) -> list[dict[str, Any]]:
    return [
        {
            "id": "models",
            "title": _("By model"),
            "rows": [_row(request, row, ("integration", "model"), ":".join(row.names)) for row in report.models],
        },
        {
            "id": "definitions",
            "title": _("By workflow"),
            "rows": [
                _row(request, row, ("definition",), row.names[0] or _("outside of runs"))
                | {
                    "runs": reverse("admin:conductor_run_changelist", query={"name": row.names[0]})
                    if row.names[0]
                    else ""
                }
                for row in report.definitions
            ],
        },
        {
            "id": "callers",
            "title": _("By caller"),
            "rows": [_row(request, row, ("caller",), row.names[0] or _("no caller")) for row in report.callers],
        },
    ]


def _row(request: HttpRequest, row: UsageRow, columns: Sequence[str], label: str) -> dict[str, Any]:
    query = request.GET.copy()
    for column, value in zip(columns, row.names, strict=True):
        query[column] = value
    address = f"?{query.urlencode()}" if all(row.names) else ""
    return {"label": label, "address": address, "cells": _cells(row.sums)}


def _cells(sums: UsageSums) -> dict[str, Any]:
    return {
        "cost": format_cost(sums.cost),
        "tokens": sums.tokens,
        "calls": sums.calls,
        "failures": sums.failures,
        "mean": "" if sums.mean_ms is None else format_duration(sums.mean_ms),
    }


def _warning(state: BudgetState) -> dict[str, Any]:
    """Return the sentence about a budget that is spent, or nearly."""
    budget, spent = state.budget, state.spent
    parts = []
    if spent is not None and budget.max_cost is not None:
        parts.append(_("%(spent)s of %(limit)s") % _amounts(format_cost, spent.cost, budget.max_cost))
    if spent is not None and budget.max_tokens is not None:
        parts.append(_("%(spent)s of %(limit)s") % _amounts(format_tokens, spent.tokens, budget.max_tokens))
    facts = {
        "budget": name_budget(budget.scope, budget.name),
        "percent": int(min(state.share or 0, 9.99) * 100),
        "amounts": ", ".join(parts),
        "room_at": format_timestamp(state.room_at) if state.room_at else "",
    }
    sentence = (
        _("%(budget)s is spent: %(amounts)s. Calls wait until %(room_at)s.")
        if state.is_spent
        else _("%(budget)s is spent to %(percent)s %%: %(amounts)s until %(room_at)s.")
    )
    return {"sentence": mark_names(sentence % facts), "is_spent": state.is_spent}


def _amounts(format_amount: Any, spent: int, limit: int) -> dict[str, str]:
    return {"spent": format_amount(spent), "limit": format_amount(limit)}
