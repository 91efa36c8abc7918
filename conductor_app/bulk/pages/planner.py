"""The planner: previews a rerun, a retry, an upgrade … of one run, and applies exactly what it has shown.

A plan has counts, a diagram of the run, and a table for each affected run.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.visibility import may, visible
from ...core.commands import UpgradePlan
from ...core.errors import Invalid, NotFound, RequestRefused
from ...core.primitives import JsonValue
from ...core.states import RUN, RUNNING
from ...core.task_impact import AGAIN, CANCELLED, CONTINUES, DROPPED, IMPACTS, NEW, RESUMED, REUSED, TaskImpact
from ...definitions.diagram.canvas import Diagram
from ...definitions.diagram.marks import StepMark, StepMarks
from ...definitions.diagram.pages import draw_definition
from ...definitions.models import WorkflowDefinition
from ...definitions.store import parsed_definition as definition_of
from ...runs.commands.plans import (
    FORWARD_OPERATIONS,
    Operation,
    OperationPlan,
    PlannedRun,
    apply_operation,
    plan_operation,
)
from ...runs.commands.repair import plan_upgrade
from ...runs.models import Attempt, Run, Task
from ...runs.pages.debugger import DEBUG_PERMISSION
from ...runs.queries.recent import keys_of, run_keys
from ...utils.differences import Difference, find_differences
from ...web.badges import format_count, format_status, render_badge, render_pill
from ...web.documents import MAX_INLINE_BYTES
from ...web.forms import parse_json_object, parse_number
from ...web.links import plan_address, run_address
from ...web.pages import ObjectPage, require_permission, show_refusal

IMPACT_PILLS = {
    AGAIN: ("active", "do-rerun"),
    RESUMED: ("waiting", "do-resume"),
    REUSED: ("succeeded", "succeeded"),
    CANCELLED: ("failed", "stopped"),
    NEW: ("paused", "todo"),
    CONTINUES: ("waiting", "active"),
    DROPPED: ("stopped", "skipped"),
}
IMPACT_LABELS = {
    AGAIN: gettext_lazy("will rerun"),
    RESUMED: gettext_lazy("will resume its sub-workflow"),
    REUSED: gettext_lazy("result reused"),
    CANCELLED: gettext_lazy("will be canceled"),
    NEW: gettext_lazy("new"),
    CONTINUES: gettext_lazy("continues"),
    DROPPED: gettext_lazy("result dropped"),
}
SHORT_LABELS = {
    AGAIN: gettext_lazy("rerun"),
    RESUMED: gettext_lazy("resumes"),
    REUSED: gettext_lazy("reused"),
    CANCELLED: gettext_lazy("canceled"),
    NEW: gettext_lazy("new"),
    CONTINUES: gettext_lazy("continues"),
    DROPPED: gettext_lazy("dropped"),
}
"""Short labels for nodes of the diagram, which also show the step type."""
IMPACT_RANK = {name: place for place, name in enumerate((AGAIN, CANCELLED, NEW, DROPPED, RESUMED, CONTINUES, REUSED))}
MAX_ROWS = 300


@dataclass(frozen=True, slots=True)
class PlannedTaskRow:
    key: str
    type: str
    pill: SafeString
    note: str
    status: SafeString | str
    is_external: bool


@dataclass(frozen=True, slots=True)
class PlannedRunPart:
    run: PlannedRun
    status: SafeString
    then: SafeString
    counts: list[SafeString]
    rows: list[PlannedTaskRow]
    more: int


@dataclass(frozen=True, slots=True)
class InputEditor:
    """A field of the form with an input as JSON. `is_wanted`: the page opens with it."""

    id: str
    label: str
    text: str
    is_edited: bool
    is_wanted: bool
    errors: list[str]


def render_plan(plan: OperationPlan, run: Run) -> dict[str, Any]:
    """Return the context of the plan's template."""
    actions = [_count_in_words(name, count) for name, count in plan.counts.items()]
    if later := _count_in_replaced(plan):
        actions.append(later)
    return {
        "counts": [_count_chip(name, count) for name, count in plan.counts.items()],
        "later": render_pill("active", later, "do-rerun") if later else "",
        "actions_text": ", ".join(actions),
        "parts": [_render_run_part(each) for each in plan.runs],
        "external": [(part.definition, part.run_id, str(impact.key)) for part, impact in plan.external],
        "picture": _draw_plan(plan, run),
    }


def _count_in_replaced(plan: OperationPlan) -> str:
    """Return how many tasks of replaced sub-workflows run again in the new ones. The counts of the plan lack them."""
    replaced = [run for run in plan.runs if run.is_replaced and run.impacts]
    if not replaced:
        return ""
    facts = {
        "n": format_count(sum(len(run.impacts) for run in replaced)),
        "name": replaced[0].definition,
        "count": format_count(len(replaced)),
    }
    if len(replaced) == 1:
        return _("and %(n)s in sub-workflow %(name)s") % facts
    return _("and %(n)s in %(count)s sub-workflows") % facts


def _count_chip(name: str, count: int) -> SafeString:
    tone, icon = IMPACT_PILLS[name]
    return render_pill(tone, _count_in_words(name, count), icon)


def _count_in_words(name: str, count: int) -> str:
    if name == REUSED:
        return ngettext("%(n)s result reused", "%(n)s results reused", count) % {"n": format_count(count)}
    if name == DROPPED:
        return ngettext("%(n)s result dropped", "%(n)s results dropped", count) % {"n": format_count(count)}
    return f"{format_count(count)} {IMPACT_LABELS[name]}"


def _render_run_part(run: PlannedRun) -> PlannedRunPart:
    counts = Counter(impact.name for impact in run.impacts)
    ordered = sorted(run.impacts, key=_rank)
    return PlannedRunPart(
        run,
        render_badge(run.status),
        render_badge(run.then),
        [_count_chip(name, counts[name]) for name in IMPACTS if counts[name]],
        [_render_task_row(impact) for impact in ordered[:MAX_ROWS]],
        max(len(ordered) - MAX_ROWS, 0),
    )


def _render_task_row(impact: TaskImpact) -> PlannedTaskRow:
    tone, icon = IMPACT_PILLS[impact.name]
    note = _("when reached") if impact.is_later else _("immediately") if impact.name == AGAIN else ""
    status = render_badge(impact.status) if impact.name != NEW else ""
    return PlannedTaskRow(
        str(impact.key),
        impact.step.type,
        render_pill(tone, str(IMPACT_LABELS[impact.name]), icon),
        note,
        status,
        impact.repeats_effects,
    )


def _draw_plan(plan: OperationPlan, run: Run) -> Diagram | None:
    """Return the diagram with the impact on each step. A box links to the task of the table that it shows first."""
    definition = definition_of(run.resolved_definition_id)
    own = next((part for part in plan.runs if part.run_id == run.pk), None)
    if definition is None or own is None:
        return None
    impacts = _impacts_by_step(own.impacts)
    seen = StepMarks({ref: _step_mark(tasks) for ref, tasks in impacts.items()}, _branch_marks(own.impacts))
    picture = draw_definition(
        definition.document,
        seen,
        link=lambda ref, path: f"#task-{impacts[ref][0].key if ref in impacts else ref}",
    )
    for node in picture.nodes:
        is_step = node.ref in impacts and not node.caption
        names = [impact.name for impact in impacts[node.ref]] if is_step else [node.status]
        if is_step and names != [REUSED]:
            # A note such as "1 of 2 done" describes one iteration before the operation.
            node.note = ""
        if names[0] in IMPACT_PILLS:
            tone, node.icon = IMPACT_PILLS[names[0]]
            node.tone = tone if len(set(names)) == 1 else f"{tone} partly"
        node.count_labels = [f"{format_count(count)} {SHORT_LABELS[each]}" for each, count in node.counts.items()]
    return picture


def _branch_marks(impacts: Iterable[TaskImpact]) -> dict[str, dict[str, int]]:
    """Return the number of branches per impact for each join of a dynamic fork, highest rank first."""
    found: dict[str, dict[str, int]] = {}
    for impact in sorted((each for each in impacts if each.joined_by), key=_rank):
        counts = found.setdefault(impact.joined_by, {})
        counts[impact.name] = counts.get(impact.name, 0) + 1
    return found


def _step_mark(tasks: Sequence[TaskImpact]) -> StepMark:
    """Return the mark of a step from the impacts on its tasks, the highest rank first.

    If the impacts differ, the mark says how many tasks have the first one. A reused result is drawn as completed,
    together with the way taken after it.
    """
    first, label = tasks[0], str(SHORT_LABELS[tasks[0].name])
    count = sum(task.name == first.name for task in tasks)
    if count < len(tasks):
        facts = {"count": format_count(count), "total": format_count(len(tasks)), "impact": label}
        return StepMark(first.name, status_text=_("%(count)s of %(total)s %(impact)s") % facts)
    return StepMark(first.status if first.name == REUSED else first.name, len(tasks), status_text=label)


def _impacts_by_step(impacts: Iterable[TaskImpact]) -> dict[str, list[TaskImpact]]:
    """Return the impacts on the tasks of each step, the highest rank first."""
    found: dict[str, list[TaskImpact]] = {}
    for impact in sorted(impacts, key=_rank):
        found.setdefault(impact.key.ref, []).append(impact)
    return found


def _rank(impact: TaskImpact) -> int:
    return IMPACT_RANK[impact.name]


OPERATIONS = {
    "retry": (
        gettext_lazy("Retry failed"),
        gettext_lazy("Retries failed, timed-out and canceled tasks; completed tasks keep their results."),
    ),
    "rerun": (
        gettext_lazy("Rerun from task"),
        gettext_lazy("Continues from the selected task. Later results are discarded."),
    ),
    "rewind": (
        gettext_lazy("Rewind to task"),
        gettext_lazy(
            "Returns to the selected task and stops before it. Later results are discarded; a run in progress is "
            "terminated first."
        ),
    ),
    "restart": (
        gettext_lazy("Restart"),
        gettext_lazy("Restarts from the beginning with the same id and input. All task results are discarded."),
    ),
    "skip": (
        gettext_lazy("Skip a step"),
        gettext_lazy("Skips a step that the run has not reached."),
    ),
    "jump": (
        gettext_lazy("Jump to a step"),
        gettext_lazy("Continues at a later step. Steps before it are skipped; open tasks there are canceled."),
    ),
    "upgrade": (
        gettext_lazy("Change version"),
        gettext_lazy("Continues with another version of the definition from the current position."),
    ),
}
DONE = {
    "retry": gettext_lazy("%(run)s retries its failed tasks."),
    "rerun": gettext_lazy("%(run)s runs again from %(place)s."),
    "rewind": gettext_lazy("%(run)s is back at %(place)s and stops before it."),
    "restart": gettext_lazy("%(run)s runs again from the beginning."),
    "skip": gettext_lazy("%(run)s will skip %(place)s."),
    "jump": gettext_lazy("%(run)s continues at %(place)s."),
    "upgrade": gettext_lazy("%(run)s continues with another version."),
}
"""What the message says after each operation."""
FROM_TASK_OPERATIONS = ("rerun", "rewind")
EDITABLE_INPUTS = {"task_input": gettext_lazy("task input"), "input": gettext_lazy("input")}
MAX_TASKS = 500
PERMISSION = "conductor.change_run"


class PlannerPage(ObjectPage):
    """Page that previews and applies an operation on one run."""

    name, title, template, permission = "plan", "Plan", "ops/bulk/run_plan.html", "conductor.view_run"
    shows_granted_rows = True
    route = "runs/<str:run_id>/plan/"

    def get_context(self, request: HttpRequest, run_id: str) -> dict[str, Any]:
        return self._plan_context(request, _find_run(run_id), request.GET)

    def handle_post(self, request: HttpRequest, run_id: str) -> HttpResponse | dict[str, Any]:
        """Show the plan of the submitted form, or apply the plan if the form confirms it."""
        run = _find_run(run_id)
        if "confirm" in request.POST and (done := self._apply_plan(request, run)) is not None:
            return done
        return self._plan_context(request, run, request.POST)

    def _apply_plan(self, request: HttpRequest, run: Run) -> HttpResponse | None:
        require_permission(request, PERMISSION, run)
        if request.POST.get("do") == "rewind":
            require_permission(request, DEBUG_PERMISSION, run)
        try:
            revision = parse_number(request.POST.get("revision", ""), _("revision"))
            attempt = selected_attempt(request.POST)
            operation = parse_operation(request.POST, run, attempt)
            apply_operation(run.pk, operation, request.user.get_username(), revision=revision)
        except RequestRefused as refused:
            show_refusal(request, refused, (_("Preview again"), plan_address(run.pk, do=request.POST.get("do", ""))))
            return None
        place = operation.ref or (attempt.task.label if attempt else _("the beginning"))
        messages.success(request, DONE[operation.name] % {"run": run.name, "place": place})
        return HttpResponseRedirect(run_address(run.pk))

    def _plan_context(self, request: HttpRequest, run: Run, form_data: Mapping[str, str]) -> dict[str, Any]:
        do = form_data.get("do") or next((name for name in OPERATIONS if _is_possible(name, run)), "skip")
        attempt, is_possible = selected_attempt(form_data), _is_possible(do, run)
        context: dict[str, Any] = {
            "title": _("Preview: %(name)s v%(version)s") % {"name": run.name, "version": run.version},
            "run": run,
            "run_keys": keys_of([run]),
            "badge": render_badge(run.status),
            "do": do,
            "is_possible": is_possible,
            "sentence": OPERATIONS.get(do, ("", ""))[1],
            "operations": [
                (name, title, _is_possible(name, run), plan_address(run.pk, do=name))
                for name, (title, _sentence) in OPERATIONS.items()
            ],
            "tasks": list(Task.objects.filter(run_id=run.pk).order_by("seq").defer("step_state")[:MAX_TASKS]),
            "attempt": attempt,
            "given": form_data,
            "may_act": may(request.user, PERMISSION, run),
            "permission": PERMISSION,
            "versions": _list_versions(run) if do in ("restart", "upgrade") else [],
            "steps": _list_steps(run) if do in ("skip", "jump") else [],
            "editors": _input_editors(do, run, attempt, form_data),
        }
        if is_possible and any(editor.errors for editor in context["editors"]):
            return context | {"has_unreadable_input": True}
        possible = [link for link in context["operations"] if link[2] and link[0] != do]
        if _lacks_place(do, attempt, form_data):
            status = format_status(run.status).lower()
            refused = _("This is not possible while the run is %(status)s.") % {"status": status}
            return context if is_possible else context | {"refused": refused, "possible": possible}
        try:
            if do == "upgrade" and (move := _plan_upgrade(form_data, run)).problems:
                return context | {"move": move}
            found = plan_operation(run.pk, parse_operation(form_data, run, attempt))
        except RequestRefused as error:
            return context | {"refused": error.message, "possible": possible}
        return context | {"plan": found, **_plan_result(found, run), "changes": input_changes(found, run, attempt)}


def _lacks_place(do: str, attempt: Attempt | None, form_data: Mapping[str, str]) -> bool:
    """Return True if the form does not name the task or step that the operation needs."""
    if do == "rerun":
        return attempt is None and "whole" not in form_data and not form_data.get("attempt")
    return (do == "rewind" and attempt is None) or (do in ("skip", "jump") and not form_data.get("ref"))


def _plan_result(found: OperationPlan, run: Run) -> dict[str, Any]:
    """Return the context of the plan, with the keys of the runs that it affects."""
    return {**render_plan(found, run), "run_keys": run_keys([run.pk, *(part.run_id for part in found.runs)])}


def parse_operation(form_data: Mapping[str, str], run: Run, attempt: Attempt | None) -> Operation:
    """Return the operation that a form requests."""
    do = form_data.get("do", "retry")
    if do not in OPERATIONS:
        raise Invalid(_("Unknown operation: %(do)r.") % {"do": do[:40]})
    version = form_data.get("version", "")
    return Operation(
        do,
        attempt_id=attempt.pk if attempt is not None and do in FROM_TASK_OPERATIONS else "",
        ref=form_data.get("ref", "").strip() if do in ("skip", "jump") else "",
        task_input=_edited_document(form_data, "task_input", attempt.input if attempt else None),
        input=_edited_document(form_data, "input", run.input) if do == "rerun" else None,
        version=parse_number(version, _("version")) if version not in ("", "latest") else None,
        latest=version == "latest",
        resume_children="resume_children" in form_data,
        reason=form_data.get("reason", "").strip(),
    )


def selected_attempt(form_data: Mapping[str, str]) -> Attempt | None:
    """Return the attempt that a form names. The engine checks that it belongs to the run or to a run below it."""
    if form_data.get("do") not in FROM_TASK_OPERATIONS or not form_data.get("attempt"):
        return None
    found = visible(Attempt.objects.of_runs().filter(pk=form_data["attempt"])).select_related("task").first()
    if found is None:
        raise NotFound(_("No such task: %(id)s.") % {"id": form_data["attempt"][:64]})
    return found


def input_changes(found: OperationPlan, run: Run, attempt: Attempt | None) -> list[tuple[str, list[Difference]]]:
    """Return the differences between the current and the edited inputs."""
    pairs = (
        (_("Task input"), attempt.input if attempt else None, found.operation.task_input),
        (_("Run input"), run.input, found.operation.input),
    )
    return [(name, find_differences(old, new)) for name, old, new in pairs if new is not None]


def _input_editors(do: str, run: Run, attempt: Attempt | None, form_data: Mapping[str, str]) -> list[InputEditor]:
    """Return the inputs that the form offers for editing. Large inputs are left out."""
    if do != "rerun":
        return []
    found = [("input", _("Run input"), run.input, run.input_size)]
    if attempt is not None:
        found.insert(
            0, ("task_input", _("Input of %(task)s") % {"task": attempt.task.label}, attempt.input, attempt.input_size)
        )
    return [
        InputEditor(
            name,
            label,
            form_data.get(name) or json.dumps(value, indent=2, ensure_ascii=False),
            is_edited=bool(form_data.get(name)) and _parse_or_none(form_data[name]) != value,
            is_wanted=form_data.get("edit") == name,
            errors=_input_errors(form_data, name),
        )
        for name, label, value, size in found
        if size <= MAX_INLINE_BYTES
    ]


def _input_errors(form_data: Mapping[str, str], name: str) -> list[str]:
    try:
        _edited_document(form_data, name, None)
    except Invalid as refused:
        return [refused.message]
    return []


def _edited_document(form_data: Mapping[str, str], name: str, old: JsonValue) -> dict[str, Any] | None:
    text = form_data.get(name, "").strip()
    if not text:
        return None
    value = parse_json_object(text, str(EDITABLE_INPUTS[name]))
    return None if value == old else value


def _parse_or_none(text: str) -> Any:
    try:
        return parse_json_object(text, "")
    except Invalid:
        return None


def _is_possible(name: str, run: Run) -> bool:
    if name == "rewind":
        return run.next_seq > 1 and not (run.parent_id and run.status in RUN.open)
    return run.status == RUNNING if name in FORWARD_OPERATIONS else RUN.allows(run.status, name)


def _list_versions(run: Run) -> list[int]:
    return list(
        visible(WorkflowDefinition.objects.filter(name=run.name)).order_by("-version").values_list("version", flat=True)
    )


def _list_steps(run: Run) -> list[str]:
    """Return the reference names of the run's steps, in the order of the document."""
    definition = definition_of(run.resolved_definition_id)
    return list(definition.steps)[:MAX_TASKS] if definition else []


def _plan_upgrade(form_data: Mapping[str, str], run: Run) -> UpgradePlan:
    """Check the upgrade to the requested version."""
    return plan_upgrade(run.pk, run.name, parse_operation(form_data, run, None).version)


def _find_run(run_id: str) -> Run:
    run = visible(Run.objects.defer("output", "variables").filter(pk=run_id)).first()
    if run is None:
        raise NotFound(_("No such run: %(id)s.") % {"id": run_id[:64]})
    return run
