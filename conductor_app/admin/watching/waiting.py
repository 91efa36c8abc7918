"""Waiting for people: the tasks that only a person can answer, each with its run and a form."""

import json
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from ...core.errors import NotFound, Refused
from ...engine import people
from ...insight.people import OPEN_FOR_PEOPLE, expected, waiting
from ...models import Attempt
from ..documents import documents
from ..json_editor import JsonDocumentField
from ..object_pages import ObjectPage
from ..pages import Page
from ..refusals import require, tell
from ..runs.panel import origins_of, readable
from ..runs.story import address

MOST = 200
ACT = "conductor.change_run"


class WaitingPage(Page):
    """What waits for a person?"""

    name, title, template, permission = "waiting", "Waiting for people", "ops/waiting.html", "conductor.view_run"
    live_template = "ops/waiting/rows.html"

    def context(self, request: HttpRequest) -> dict[str, Any]:
        found = list(waiting()[: MOST + 1])
        return {"attempts": found[:MOST], "is_cut": len(found) > MOST, "most": MOST}


class AnswerForm(forms.Form):
    """What the task's output is to be."""

    output = JsonDocumentField(label="Output", required=False)
    reason = forms.CharField(label="Reason or comment", required=False, max_length=500)

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.fields["output"].widget.attrs["rows"] = 8


class AnswerPage(ObjectPage):
    """One of them: what it asks, of which run, and the answer."""

    name, template, permission, route = (
        "waiting_task",
        "ops/waiting/task.html",
        "conductor.view_run",
        "waiting/<str:id>/",
    )

    def shown(self, request: HttpRequest, id: str = "") -> dict[str, Any]:
        return self._shown(request, _found(id), None)

    def sent(self, request: HttpRequest, id: str = "") -> HttpResponse:
        require(request, ACT)
        attempt, form = _found(id), AnswerForm(request.POST)
        output = form.cleaned_data.get("output") if form.is_valid() else None
        if not form.is_valid() or not isinstance(output or {}, dict):
            messages.error(request, "The output is no JSON object.")
            return HttpResponseRedirect(request.path)
        said, reason = request.POST.get("outcome", ""), form.cleaned_data["reason"].strip()
        try:
            people.conclude(attempt.run_id, attempt.pk, said, request.user.get_username(), output or {}, reason)
        except Refused as refused:
            tell(request, refused, ("To the run", address(attempt.run_id)))
            return HttpResponseRedirect(reverse("admin:waiting"))
        messages.success(request, f"The task {attempt.task} of {attempt.run.name} is answered.")
        return HttpResponseRedirect(reverse("admin:waiting"))

    def _shown(self, request: HttpRequest, attempt: Attempt, form: AnswerForm | None) -> dict[str, Any]:
        names = expected(attempt.run.plan_id, attempt.task.ref)
        first = json.dumps(dict.fromkeys(names), indent=2)
        return {
            "title": f"{attempt.task} waits for a person",
            "attempt": attempt,
            "run_address": f"{address(attempt.run_id)}?task={attempt.task}",
            "form": form or AnswerForm(initial={"output": first}),
            "expected": names,
            "documents": documents(attempt, ("input",)),
            "origins": origins_of(attempt),
            "may_act": request.user.has_perm(ACT),
            "permission": ACT,
        }


def _found(id: str) -> Attempt:
    attempt = readable().filter(pk=id, task__in=OPEN_FOR_PEOPLE).first()
    if attempt is None:
        raise NotFound("This task does not wait for a person, or not any more: it may have been answered.")
    return attempt
