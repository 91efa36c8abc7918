"""The view model of a plan: counts, a diagram of the run, and a table for each affected run."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.task_impact import AGAIN, CANCELLED, CONTINUES, DROPPED, IMPACTS, NEW, RESUMED, REUSED, TaskImpact
from ...engine.runs.planning import OperationPlan, PlannedRun
from ...insight.definitions.diagram import Diagram, StepMark, StepMarks
from ...insight.definitions.parsed_definitions import parsed_definition as definition_of
from ...models import Run
from ..badges import format_count, render_badge, render_pill
from ..pictures import draw_definition

IMPACT_PILLS = {
    AGAIN: ("active", "do-rerun"),
    RESUMED: ("waiting", "do-resume"),
    REUSED: ("succeeded", "succeeded"),
    CANCELLED: ("failed", "stopped"),
    NEW: ("paused", "todo"),
    CONTINUES: ("waiting", "active"),
    DROPPED: ("stopped", "skipped"),
}
"""The color and the icon of each impact."""
IMPACT_LABELS = {
    AGAIN: gettext_lazy("will rerun"),
    RESUMED: gettext_lazy("will resume its sub-workflow"),
    REUSED: gettext_lazy("result reused"),
    CANCELLED: gettext_lazy("will be canceled"),
    NEW: gettext_lazy("new"),
    CONTINUES: gettext_lazy("continues"),
    DROPPED: gettext_lazy("result dropped"),
}
"""The label of each impact."""
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
    """One task of the plan."""

    key: str
    type: str
    pill: SafeString
    note: str
    status: SafeString | str
    is_external: bool


@dataclass(frozen=True, slots=True)
class PlannedRunPart:
    """One run of the plan and its tasks."""

    run: PlannedRun
    status: SafeString
    then: SafeString
    counts: list[SafeString]
    rows: list[PlannedTaskRow]
    more: int


def render_plan(plan: OperationPlan, run: Run) -> dict[str, Any]:
    """Return the context of the plan's template."""
    return {
        "counts": [_count_chip(name, count) for name, count in plan.counts.items()],
        "actions_text": ", ".join(_count_in_words(name, count) for name, count in plan.counts.items()),
        "parts": [_render_run_part(each) for each in plan.runs],
        "external": [(part.definition, part.run_id, str(impact.key)) for part, impact in plan.external],
        "picture": _draw_plan(plan, run),
    }


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
