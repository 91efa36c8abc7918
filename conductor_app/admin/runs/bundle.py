"""A run given out as one file, and such a file looked at: nothing of it is kept, and nothing can be done to it."""

from collections.abc import Iterable
from typing import Any

import orjson
from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...core.errors import Invalid, Refused
from ...engine.definitions import validate_workflow
from ...insight.diagram import Diagram, StepMarks
from ...insight.run_bundle import BundledAttempt, RunBundle, export_run, parse_bundle
from ...models import Run
from ..badges import ago, badge, group_of, icon, lasting
from ..documents import LARGE, as_file, word_for
from ..error_messages import tell
from ..json_tree import tree
from ..pictures import picture
from .effects import in_words
from .story import DOCUMENTS, address, readable

LARGEST = 50_000_000
LARGEST_DRAWN = 1_000_000
MOST_SHOWN, MOST_TOLD = 300, 100
ALL_VALUES = 500_000
"""Bytes of attempts' values that the page draws; the file has the others."""


class BundleFile(forms.Form):
    """A file that somebody was given."""

    file = forms.FileField(label=gettext_lazy("File"))

    def clean_file(self) -> RunBundle:
        """What is in it."""
        file = self.cleaned_data["file"]
        if file.size > LARGEST:
            raise forms.ValidationError(_("The file has more than %(count)s MB.") % {"count": LARGEST // 1_000_000})
        try:
            return parse_bundle(orjson.loads(file.read()))
        except orjson.JSONDecodeError as fault:
            raise forms.ValidationError(_("This is not JSON: %(fault)s") % {"fault": str(fault)[:200]}) from None
        except Invalid as refused:
            raise forms.ValidationError(refused.message) from None


def give_out(request: HttpRequest, run_id: str) -> HttpResponse:
    """The run as a file."""
    _admit(request)
    if readable(run_id) is None:
        raise Http404
    run = Run.objects.get(pk=run_id)
    try:
        document = export_run(run, clock.now(), request.user.get_username(), request.get_host())
    except Refused as refused:
        tell(request, refused)
        return HttpResponseRedirect(address(run_id))
    return as_file(document, f"run-{run.pk}")


def look_into(model_admin: admin.ModelAdmin, request: HttpRequest) -> HttpResponse:
    """The form; with a file, what is in it."""
    _admit(request)
    form = BundleFile(request.POST or None, request.FILES or None)
    is_read = request.method == "POST" and form.is_valid()
    return TemplateResponse(
        request,
        "ops/run/bundle.html",
        {
            **model_admin.admin_site.each_context(request),
            "title": _("Look into a bundle"),
            "form": form,
            **(_shown(form.cleaned_data["file"]) if is_read else {}),
        },
    )


def _admit(request: HttpRequest) -> None:
    if not request.user.has_perm("conductor.view_run"):
        raise PermissionDenied


def _shown(run: RunBundle) -> dict[str, Any]:
    tone, end = group_of(run.status), run.ended_at or run.taken_at
    return {
        "run": run,
        "title": f"{run.name} v{run.version}",
        "badge": badge(run.status),
        "tone": tone,
        "icon": icon(tone),
        "facts": [
            (_("Duration"), lasting(run.created_at, end) if end else ""),
            (_("Started"), ago(run.created_at)),
            (_("Ended"), ago(run.ended_at) if run.ended_at else ""),
            (_("Started by"), run.started_by),
            (_("Correlation id"), run.correlation_id),
            (_("Labels"), ", ".join(run.labels)),
            (_("Server"), run.server),
            (_("Given out"), ago(run.taken_at)),
            (_("By"), run.taken_by),
        ],
        "picture": _picture(run),
        "documents": [(word_for(name), tree(run.documents[name])) for name in DOCUMENTS if run.documents[name]],
        "attempts": list(_attempts(run)),
        "more_attempts": max(len(run.attempts) - MOST_SHOWN, 0),
        "history": [
            {"entry": entry, "at": ago(entry.at), "effects": _effects(entry.effects)}
            for entry in run.history[:MOST_TOLD]
        ],
        "more_history": max(len(run.history) - MOST_TOLD, 0),
    }


def _picture(run: RunBundle) -> Diagram | None:
    """The definition with what became of its steps, if it is one."""
    if not run.definition or len(orjson.dumps(run.definition)) > LARGEST_DRAWN:
        return None
    if validate_workflow(run.definition):
        return None
    return picture(run.definition, StepMarks.of(attempt for attempt in run.attempts if attempt.is_last))


def _attempts(run: RunBundle) -> Iterable[dict[str, Any]]:
    """The attempts in their order; of very many those that ended badly come first."""
    left, shown = ALL_VALUES, run.attempts
    if len(shown) > MOST_SHOWN:
        shown = sorted(shown, key=lambda attempt: group_of(attempt.status) != "failed")[:MOST_SHOWN]
    for attempt in shown:
        size = len(orjson.dumps([attempt.input, attempt.output]))
        is_drawn = size <= min(left, LARGE)
        left -= size if is_drawn else 0
        yield _attempt(attempt, run, is_drawn)


def _attempt(attempt: BundledAttempt, run: RunBundle, is_drawn: bool) -> dict[str, Any]:
    end = attempt.ended_at or run.taken_at
    values = [("input", attempt.input), ("output", attempt.output)]
    return {
        "attempt": attempt,
        "number": attempt.number + 1,
        "badge": badge(attempt.status),
        "began": ago(attempt.started_at or attempt.scheduled_at),
        "lasted": lasting(attempt.started_at, end) if end else "",
        "values": [(word_for(name), tree(value)) for name, value in values if value] if is_drawn else [],
        "is_drawn": is_drawn,
    }


def _effects(effects: list[dict[str, Any]]) -> list[SafeString]:
    """What was decided, in words; a line that no engine has written is left out."""
    said: list[SafeString] = []
    for effect in effects[:MOST_TOLD]:
        try:
            said += in_words([effect])
        except (TypeError, ValueError, AttributeError, KeyError):
            continue
    return said
