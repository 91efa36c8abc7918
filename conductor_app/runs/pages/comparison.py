"""Comparison of two runs: version, input, tasks, times and results."""

from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.visibility import visible
from ...core.errors import NotFound
from ...core.failure_grouping import informative_line
from ...definitions.models import WorkflowDefinition
from ...explanations.cause import failure_reasons
from ...utils.differences import MISSING, Difference
from ...utils.formatting import format_duration
from ...web.badges import machine_time, render_badge
from ...web.documents import json_file_response, payload_label
from ...web.pages import ObjectPage
from ..models import Run
from ..queries.comparison import ComparedRow, RunComparison, compare_runs, comparison_candidates, find_run_id
from ..queries.recent import run_keys
from ..timeline.tree import FAILED_STATUSES

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

    # The page sends a file in place of a context.
    def get_context(self, request: HttpRequest, run_id: str) -> HttpResponse | dict[str, Any]:  # type: ignore[override]
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
        comparison = compare_runs(one, other)
        if request.GET.get("format") == "json":
            return json_file_response(_comparison_file(comparison), f"{one.pk}-{other.pk}")
        context["export"] = reverse("admin:compare", args=[one.pk], query={"with": other_id, "format": "json"})
        return context | _result_context(comparison, only)


def _comparison_file(found: RunComparison) -> dict[str, Any]:
    """Return the comparison as JSON."""
    return {
        "one": _run_document(found.one),
        "other": _run_document(found.other),
        "tasks": [
            {
                "task": row.key,
                "differs": row.differs,
                "delta_ms": row.delta_ms,
                "one": asdict(row.one) if row.one else None,
                "other": asdict(row.other) if row.other else None,
            }
            for row in found.rows
        ],
        "is_cut": found.is_cut,
        "documents": {
            name: None if differences is None else list(map(_difference_document, differences))
            for name, differences in found.documents.items()
        },
    }


def _run_document(run: Run) -> dict[str, Any]:
    began, ended = machine_time(run.created_at), machine_time(run.ended_at)
    facts = {"id": run.pk, "definition": run.name, "version": run.version, "status": run.status}
    return facts | {"started_at": began, "ended_at": ended, "reason": run.reason}


def _difference_document(each: Difference) -> dict[str, Any]:
    """Return one difference. A side without a value is left out."""
    sides = {"one": each.before, "other": each.after}
    return {"place": each.path} | {name: value for name, value in sides.items() if value is not MISSING}


def _result_context(found: RunComparison, only: bool) -> dict[str, Any]:
    longest = max([abs(row.delta_ms or 0) for row in found.rows] or [0]) or 1
    rows = [row for row in found.rows if row.differs or not only]
    return {
        "found": found,
        "other": found.other,
        "other_badge": render_badge(found.other.status),
        "rows": [_row_context(row, longest) for row in rows],
        "hidden": len(found.rows) - len(rows),
        "has_builds": any(side and side.build for row in rows for side in (row.one, row.other)),
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
        "delta": "" if delta is None else f"{'+' if delta >= 0 else '−'}{format_duration(abs(delta))}",
        "width": 0 if delta is None else round(50 * abs(delta) / longest),
        "is_slower": (delta or 0) > 0,
        "left": 50 if (delta or 0) > 0 else 50 - round(50 * abs(delta or 0) / longest),
    }


def _duration_text(run: Run) -> str:
    return format_duration(run.ended_at - run.created_at) if run.ended_at else _("still running")


def _find_run(run_id: str) -> Run:
    run = visible(Run.objects.filter(pk=run_id)).first()
    if run is None:
        raise NotFound(_("No such run: %(id)s.") % {"id": run_id[:64]})
    return run
