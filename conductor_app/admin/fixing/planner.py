"""The planner: what a rerun, a retry, a restart or a skip would come to, and the button that does exactly that."""

import json
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from ...core.errors import Invalid, NotFound, Refused
from ...core.states import RUN
from ...engine.operations import Operation, carry_out
from ...engine.planning import Plan, plan
from ...insight.differences import Difference, differences
from ...models import Attempt, Run, Task, WorkflowDefinition
from ..documents import LARGE
from ..marks import badge
from ..object_pages import ObjectPage
from ..refusals import require, tell
from ..runs.page import address
from .planned import planned

WAYS = {
    "retry": ("Retry what failed", "Every task that failed, timed out or was canceled gets another attempt."),
    "rerun": ("From a task", "The run goes on from one of its tasks, as if what came after had never been."),
    "restart": ("From the start", "The run begins anew under its id: all tasks and what came of them are forgotten."),
    "skip": ("Skip a step", "A step that control has not come to is passed over."),
}
MOST_TASKS = 500
PERMISSION = "conductor.change_run"


def plan_address(run_id: str, **asked: str) -> str:
    """Where the plan for a run is."""
    return reverse("admin:plan", args=[run_id], query=asked or None)


class PlannerPage(ObjectPage):
    """Fix one run safely."""

    name, title, template, permission = "plan", "Plan", "ops/plan.html", "conductor.view_run"
    route = "runs/<str:run_id>/plan/"

    def shown(self, request: HttpRequest, **which: Any) -> dict[str, Any]:
        return self._shown(request, _run(which["run_id"]), request.GET)

    def sent(self, request: HttpRequest, **which: Any) -> HttpResponse:
        """The form asks for its plan, or confirms the one that it shows."""
        run = _run(which["run_id"])
        if "confirm" in request.POST and (done := self._confirmed(request, run)) is not None:
            return done
        from ..site import site

        shown = {**site.each_context(request), "page": self, **self._shown(request, run, request.POST)}
        return TemplateResponse(request, self.template, shown)

    def _confirmed(self, request: HttpRequest, run: Run) -> HttpResponse | None:
        require(request, PERMISSION)
        try:
            revision = _number(request.POST.get("revision", ""), "revision")
            operation = asked(request.POST, run, attempt_of(request.POST, run))
            carry_out(run.pk, operation, request.user.get_username(), revision=revision)
        except Refused as refused:
            tell(request, refused, ("Plan it again", plan_address(run.pk, do=request.POST.get("do", ""))))
            return None
        messages.success(request, "It is done as planned.")
        return HttpResponseRedirect(address(run.pk))

    def _shown(self, request: HttpRequest, run: Run, given: Mapping[str, str]) -> dict[str, Any]:
        do = given.get("do") or next((name for name in WAYS if _may(name, run)), "skip")
        attempt = attempt_of(given, run)
        shown: dict[str, Any] = {
            "title": f"Plan for {run.name} v{run.version}",
            "run": run,
            "badge": badge(run.status),
            "do": do,
            "sentence": WAYS.get(do, ("", ""))[1],
            "ways": [
                (name, title, _may(name, run), plan_address(run.pk, do=name)) for name, (title, _) in WAYS.items()
            ],
            "tasks": list(Task.objects.filter(run_id=run.pk).order_by("seq").defer("memo")[:MOST_TASKS]),
            "attempt": attempt,
            "given": given,
            "may_act": request.user.has_perm(PERMISSION),
            "permission": PERMISSION,
            "versions": _versions(run) if do == "restart" else [],
            "editors": _editors(do, run, attempt, given),
        }
        if do == "rerun" and attempt is None and "whole" not in given and not given.get("attempt"):
            return shown
        try:
            found = plan(run.pk, asked(given, run, attempt))
        except Refused as refused:
            possible = [way for way in shown["ways"] if way[2] and way[0] != do]
            return shown | {"refused": refused.message, "possible": possible}
        return shown | {"plan": found, **planned(found, run), "changes": changes(found, run, attempt)}


def asked(given: Mapping[str, str], run: Run, attempt: Attempt | None) -> Operation:
    """The operation that a form asks for. Raises Invalid."""
    do = given.get("do", "retry")
    if do not in WAYS:
        raise Invalid(f"There is no plan for {do[:40]!r}.")
    version = given.get("version", "")
    return Operation(
        do,
        attempt_id=attempt.pk if attempt is not None and do == "rerun" else "",
        ref=given.get("ref", "").strip() if do == "skip" else "",
        task_input=_edited(given, "task_input", attempt.input if attempt else None),
        input=_edited(given, "input", run.input) if do == "rerun" else None,
        version=_number(version, "version") if version not in ("", "latest") else None,
        latest=version == "latest",
        resume_children="resume_children" in given,
        reason=given.get("reason", "").strip(),
    )


def attempt_of(given: Mapping[str, str], run: Run) -> Attempt | None:
    """The attempt whose task a form names: of this run, or of one below it; its id is looked at by the engine."""
    if given.get("do") != "rerun" or not given.get("attempt"):
        return None
    found = Attempt.objects.of_runs().select_related("task").filter(pk=given["attempt"]).first()
    if found is None:
        raise NotFound(f"There is no task {given['attempt'][:64]}.")
    return found


def changes(found: Plan, run: Run, attempt: Attempt | None) -> list[tuple[str, list[Difference]]]:
    """What the edited inputs change."""
    pairs = (
        ("The task's input", attempt.input if attempt else None, found.operation.task_input),
        ("The run's input", run.input, found.operation.input),
    )
    return [(name, differences(old, new)) for name, old, new in pairs if new is not None]


def _editors(do: str, run: Run, attempt: Attempt | None, given: Mapping[str, str]) -> list[dict[str, Any]]:
    """The documents that can be edited before it is done; large ones cannot be, here."""
    if do != "rerun":
        return []
    found = [("input", "The run's input", run.input, run.input_size)]
    if attempt is not None:
        found.insert(0, ("task_input", f"Input of {attempt.task}", attempt.input, attempt.input_size))
    return [
        {
            "name": name,
            "label": label,
            "text": given.get(name) or json.dumps(value, indent=2, ensure_ascii=False),
            "is_edited": bool(given.get(name)) and _read(given[name]) != value,
        }
        for name, label, value, size in found
        if size <= LARGE
    ]


def _edited(given: Mapping[str, str], name: str, old: Any) -> dict[str, Any] | None:
    """What was typed, if it says something else than what there is. Raises Invalid."""
    text = given.get(name, "").strip()
    if not text:
        return None
    try:
        value = json.loads(text)
    except ValueError as wrong:
        raise Invalid(f"The {name.replace('_', ' ')} is no JSON: {wrong}.") from wrong
    if not isinstance(value, dict):
        raise Invalid(f"The {name.replace('_', ' ')} must be a JSON object.")
    return None if value == old else value


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _may(name: str, run: Run) -> bool:
    return run.status in RUN.open if name == "skip" else RUN.allows(run.status, name)


def _versions(run: Run) -> list[int]:
    return list(WorkflowDefinition.objects.filter(name=run.name).order_by("-version").values_list("version", flat=True))


def _number(text: str, name: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise Invalid(f"{text[:40]!r} is no {name}.")
    return int(text)


def _run(run_id: str) -> Run:
    run = Run.objects.defer("output", "variables").filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    return run
