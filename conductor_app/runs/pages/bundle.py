"""Run bundles: export of a run as one file, and a read-only view of such a file that stores nothing."""

from collections.abc import Iterable
from typing import Any

import orjson
from django import forms
from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import Invalid, RequestRefused
from ...definitions.diagram.canvas import Diagram
from ...definitions.diagram.marks import StepMarks
from ...definitions.diagram.pages import draw_definition
from ...definitions.validation import validate_workflow
from ...utils import clock
from ...web.badges import relative_time, render_badge, render_icon, running_time, status_tone
from ...web.documents import MAX_INLINE_BYTES, json_file_response, payload_label, render_tree
from ...web.links import run_address
from ...web.pages import require_permission_on_any, show_refusal
from ..models import Run
from ..queries.bundle import BundledAttempt, RunBundle, export_run, parse_bundle
from .history import describe_effects
from .view_model import DOCUMENTS, find_readable_run

MAX_BYTES = 50_000_000
MAX_DRAWN_BYTES = 1_000_000
MAX_ATTEMPTS, MAX_HISTORY = 300, 100
MAX_VALUE_BYTES = 500_000
"""Number of bytes of payloads that the page renders. The file has the others."""


class BundleFileForm(forms.Form):
    """A bundle that the user received."""

    file = forms.FileField(label=gettext_lazy("File"))

    def clean_file(self) -> RunBundle:
        """Parse the bundle.

        Raises:
            ValidationError: when the file is too large, is not JSON, or is not a bundle.
        """
        file = self.cleaned_data["file"]
        if file.size > MAX_BYTES:
            raise forms.ValidationError(_("The file is larger than %(count)s MB.") % {"count": MAX_BYTES // 1_000_000})
        try:
            return parse_bundle(orjson.loads(file.read()))
        except orjson.JSONDecodeError as fault:
            raise forms.ValidationError(_("Invalid JSON: %(error)s") % {"error": str(fault)[:200]}) from None
        except Invalid as refused:
            raise forms.ValidationError(refused.message) from None


def export_run_file(request: HttpRequest, run_id: str) -> HttpResponse:
    """Download the run as a bundle.

    Raises:
        Http404: when there is no such run.
    """
    require_permission_on_any(request, "conductor.view_run")
    if find_readable_run(run_id) is None:
        raise Http404
    run = Run.objects.get(pk=run_id)
    try:
        document = export_run(run, clock.now(), request.user.get_username(), request.get_host())
    except RequestRefused as refused:
        show_refusal(request, refused)
        return HttpResponseRedirect(run_address(run_id))
    return json_file_response(document, f"run-{run.pk}")


def inspect_bundle(model_admin: admin.ModelAdmin, request: HttpRequest) -> HttpResponse:
    """Show the upload form, or the content of an uploaded bundle."""
    require_permission_on_any(request, "conductor.view_run")
    form = BundleFileForm(request.POST or None, request.FILES or None)
    is_read = request.method == "POST" and form.is_valid()
    return TemplateResponse(
        request,
        "ops/runs/bundle.html",
        {
            **model_admin.admin_site.each_context(request),
            "title": _("Open run bundle"),
            "form": form,
            **(_bundle_context(form.cleaned_data["file"]) if is_read else {}),
        },
    )


def _bundle_context(run: RunBundle) -> dict[str, Any]:
    tone, end = status_tone(run.status), run.ended_at or run.exported_at
    return {
        "run": run,
        "title": f"{run.name} v{run.version}",
        "badge": render_badge(run.status),
        "tone": tone,
        "icon": render_icon(tone),
        "facts": [
            (_("Duration"), running_time(run.created_at, end) if end else ""),
            (_("Started"), relative_time(run.created_at)),
            (_("Ended"), relative_time(run.ended_at) if run.ended_at else ""),
            (_("Started by"), run.started_by),
            (_("Correlation id"), run.correlation_id),
            (_("Labels"), ", ".join(run.labels)),
            (_("Server"), run.server),
            (_("Exported"), relative_time(run.exported_at)),
            (_("Exported by"), run.exported_by),
        ],
        "picture": _draw_run(run),
        "documents": [
            (payload_label(name), render_tree(run.documents[name])) for name in DOCUMENTS if run.documents[name]
        ],
        "attempts": list(_attempt_rows(run)),
        "more_attempts": max(len(run.attempts) - MAX_ATTEMPTS, 0),
        "history": [
            {"entry": entry, "at": relative_time(entry.at), "effects": _effect_sentences(entry.effects)}
            for entry in run.history[:MAX_HISTORY]
        ],
        "more_history": max(len(run.history) - MAX_HISTORY, 0),
    }


def _draw_run(run: RunBundle) -> Diagram | None:
    """Return the diagram with the status of each step, if the definition is valid."""
    if not run.definition or len(orjson.dumps(run.definition)) > MAX_DRAWN_BYTES:
        return None
    if validate_workflow(run.definition):
        return None
    return draw_definition(run.definition, StepMarks.from_tasks(attempt for attempt in run.attempts if attempt.is_last))


def _attempt_rows(run: RunBundle) -> Iterable[dict[str, Any]]:
    """Yield the attempts in order. If there are too many, failed attempts come first."""
    left, attempts = MAX_VALUE_BYTES, run.attempts
    if len(attempts) > MAX_ATTEMPTS:
        attempts = sorted(attempts, key=lambda attempt: status_tone(attempt.status) != "failed")[:MAX_ATTEMPTS]
    for attempt in attempts:
        size = len(orjson.dumps([attempt.input, attempt.output]))
        is_drawn = size <= min(left, MAX_INLINE_BYTES)
        left -= size if is_drawn else 0
        yield _attempt_row(attempt, run, is_drawn)


def _attempt_row(attempt: BundledAttempt, run: RunBundle, is_drawn: bool) -> dict[str, Any]:
    end = attempt.ended_at or run.exported_at
    values = [("input", attempt.input), ("output", attempt.output)]
    return {
        "attempt": attempt,
        "number": attempt.number + 1,
        "badge": render_badge(attempt.status),
        "began": relative_time(attempt.started_at or attempt.scheduled_at),
        "duration": running_time(attempt.started_at, end) if end else "",
        "values": [(payload_label(name), render_tree(value)) for name, value in values if value] if is_drawn else [],
        "is_drawn": is_drawn,
    }


def _effect_sentences(effects: list[dict[str, Any]]) -> list[SafeString]:
    """Return the effects as sentences. Unreadable lines are left out."""
    sentences: list[SafeString] = []
    for effect in effects[:MAX_HISTORY]:
        try:
            sentences += describe_effects([effect])
        except (TypeError, ValueError, AttributeError, KeyError):
            continue
    return sentences
