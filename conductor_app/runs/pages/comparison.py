"""Comparison of two runs: version, input, tasks, times and results."""

from typing import Any

from django.http import HttpRequest
from django.urls import get_script_prefix, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.visibility import visible
from ...core.errors import NotFound
from ...core.failure_grouping import informative_line
from ...definitions.models import WorkflowDefinition
from ...explanations.cause import failure_reasons
from ...utils.formatting import format_duration
from ...web.badges import render_badge
from ...web.documents import payload_label
from ...web.pages import ObjectPage
from ..models import Run
from ..queries.comparison import ComparedRow, RunComparison, compare_runs, comparison_candidates, find_run_id
from ..queries.recent import run_keys
from ..timeline.tree import FAILED_STATUSES
from .view_model import no_such_run

CANDIDATE_LABELS = {
    "last success": gettext_lazy("last success"),
    "last failure": gettext_lazy("last failure"),
    "previous": gettext_lazy("previous"),
}
"""The suggested runs to compare with."""


class ComparePage(ObjectPage):
    """Page that compares two runs."""

    name, template, permission = "compare", "ops/runs/compare.html", "conductor.view_run"
    shows_granted_rows = True
    route = "runs/<str:run_id>/compare/"

    def get_context(self, request: HttpRequest, run_id: str) -> dict[str, Any]:
        one = _find_run(run_id)
        found = comparison_candidates(one)
        requested = request.GET.get("with", "").strip().replace("\0", "")
        other_id = found.get(requested) or find_run_id(requested, one) or next(iter(found.values()), "")
        only, keys = "all" not in request.GET, run_keys([one.pk, other_id, *found.values()])
        context: dict[str, Any] = {
            "title": _("Compare %(name)s v%(version)s") % {"name": one.name, "version": one.version},
            "one": one,
            "one_badge": render_badge(one.status),
            "with": other_id,
            "requested": "" if requested in (other_id, *found) else requested,
            "run_keys": keys,
            "candidates": [(CANDIDATE_LABELS[name], id, keys.get(id), id == other_id) for name, id in found.items()],
            "only": only,
            "address": reverse("admin:compare", args=[one.pk]),
        }
        if not other_id:
            return context
        other = visible(Run.objects.filter(pk=other_id)).first()
        if other is None:
            return context | {"missing": other_id[:64]}
        context["export"] = f"{get_script_prefix()}api/insight/runs/{one.pk}/compare?with={other_id}"
        return context | _result_context(compare_runs(one, other), only)


def _result_context(found: RunComparison, only: bool) -> dict[str, Any]:
    longest = max([abs(row.delta_ms or 0) for row in found.rows] or [0]) or 1
    rows = [row for row in found.rows if row.differs or not only]
    return {
        "found": found,
        "other": found.other,
        "other_badge": render_badge(found.other.status),
        "rows": [_row_context(row, longest) for row in rows],
        "hidden": len(found.rows) - len(rows),
        "speed": _("Speed of the other run"),
        "build": _("Worker build") if any(side and side.build for row in rows for side in (row.one, row.other)) else "",
        "documents": [
            (payload_label(name), changed) for name, changed in found.documents.items() if changed or changed is None
        ],
        "swap_address": reverse("admin:compare", args=[found.other.pk], query={"with": found.one.pk}),
        "versions": _versions_address(found),
        "durations": [_duration_text(found.one), _duration_text(found.other)],
        "errors": _failures(found.one, found.other),
    }


def _failures(*runs: Run) -> list[str]:
    """Return where and why each run failed. Empty if none of them did."""
    if all(run.status not in FAILED_STATUSES for run in runs):
        return []
    known = failure_reasons(runs)
    return [_failure_text(run, *known.get(run.pk, ("", informative_line(run.reason, 200)))) for run in runs]


def _failure_text(run: Run, task: str, reason: str) -> str:
    if run.status not in FAILED_STATUSES:
        return ""
    return f"{task}: {reason}" if task else reason


def _versions_address(found: RunComparison) -> str:
    """Return the address that compares the definitions, if both versions are stored."""
    if not found.have_same_definition or found.one.version == found.other.version:
        return ""
    versions = (found.one.version, found.other.version)
    rows = visible(WorkflowDefinition.objects.filter(name=found.one.name, version__in=versions))
    by_version = dict(rows.values_list("version", "pk"))
    if len(by_version) < 2:
        return ""
    one, other = (by_version[version] for version in versions)
    return reverse("admin:workflowdefinition_compare", args=[other], query={"with": one, "to": other})


def _row_context(row: ComparedRow, longest: int) -> dict[str, Any]:
    delta = row.delta_ms
    return {
        "row": row,
        "one": render_badge(row.one.status) if row.one else "",
        "other": render_badge(row.other.status) if row.other else "",
        "delta": "" if delta is None else _delta_text(delta),
        "width": 0 if delta is None else round(50 * abs(delta) / longest),
        "is_slower": (delta or 0) > 0,
        "left": 50 if (delta or 0) > 0 else 50 - round(50 * abs(delta or 0) / longest),
    }


def _delta_text(delta: int) -> str:
    if not delta:
        return _("as fast")
    return (_("%(time)s slower") if delta > 0 else _("%(time)s faster")) % {"time": format_duration(abs(delta))}


def _duration_text(run: Run) -> str:
    return format_duration(run.duration_ms(run.ended_at)) if run.ended_at else _("still running")


def _find_run(run_id: str) -> Run:
    run = visible(Run.objects.filter(pk=run_id)).first()
    if run is None:
        raise NotFound(no_such_run(run_id))
    return run
