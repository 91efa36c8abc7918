"""A plan as its page shows it: counts, a picture of the run, and a table for each run that it touches."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.task_impact import AGAIN, CANCELLED, DROPPED, FATES, GOES_ON, NEW, RESUMED, REUSED, TaskImpact
from ...engine.planning import OperationPlan, PlannedRun
from ...insight.diagram import Diagram, StepMark, StepMarks, diagram
from ...insight.parsed_definitions import parsed_definition as definition_of
from ...models import Run
from ..badges import badge, format_count, pill

LOOKS = {
    AGAIN: ("active", "do-rerun"),
    RESUMED: ("waiting", "do-resume"),
    REUSED: ("succeeded", "succeeded"),
    CANCELLED: ("failed", "stopped"),
    NEW: ("paused", "todo"),
    GOES_ON: ("waiting", "active"),
    DROPPED: ("stopped", "skipped"),
}
"""The colour and the sign of each fate."""
WORDS = {
    AGAIN: gettext_lazy("will run again"),
    RESUMED: gettext_lazy("will resume its sub-workflow"),
    REUSED: gettext_lazy("result reused"),
    CANCELLED: gettext_lazy("will be cancelled"),
    NEW: gettext_lazy("new"),
    GOES_ON: gettext_lazy("goes on"),
    DROPPED: gettext_lazy("result dropped"),
}
"""What a page says of each fate."""
SHORT = {
    AGAIN: gettext_lazy("again"),
    RESUMED: gettext_lazy("resumes"),
    REUSED: gettext_lazy("reused"),
    CANCELLED: gettext_lazy("cancelled"),
    NEW: gettext_lazy("new"),
    GOES_ON: gettext_lazy("goes on"),
    DROPPED: gettext_lazy("dropped"),
}
"""The same in a box of the picture, where its type stands too."""
RANK = {name: place for place, name in enumerate((AGAIN, CANCELLED, NEW, DROPPED, RESUMED, GOES_ON, REUSED))}
MOST_ROWS = 300


@dataclass(frozen=True, slots=True)
class PlannedTaskRow:
    """One task."""

    key: str
    type: str
    pill: SafeString
    note: str
    status: SafeString | str
    is_external: bool


@dataclass(frozen=True, slots=True)
class PlannedRunPart:
    """One run and its tasks."""

    run: PlannedRun
    status: SafeString
    then: SafeString
    counts: list[SafeString]
    rows: list[PlannedTaskRow]
    more: int


def render_plan(plan: OperationPlan, run: Run) -> dict[str, Any]:
    """What the template shows of it."""
    return {
        "counts": [_count_chip(name, count) for name, count in plan.counts.items()],
        "counted": ", ".join(_count_in_words(name, count) for name, count in plan.counts.items()),
        "parts": [_part(each) for each in plan.runs],
        "external": [(part.definition, part.run_id, str(fate.key)) for part, fate in plan.external],
        "picture": _picture(plan, run),
    }


def _count_chip(name: str, count: int) -> SafeString:
    tone, icon = LOOKS[name]
    return pill(tone, _count_in_words(name, count), icon)


def _count_in_words(name: str, count: int) -> str:
    if name == REUSED:
        return ngettext("%(n)s result reused", "%(n)s results reused", count) % {"n": format_count(count)}
    if name == DROPPED:
        return ngettext("%(n)s result dropped", "%(n)s results dropped", count) % {"n": format_count(count)}
    return f"{format_count(count)} {WORDS[name]}"


def _part(run: PlannedRun) -> PlannedRunPart:
    counts = Counter(fate.name for fate in run.fates)
    ordered = sorted(run.fates, key=lambda fate: RANK[fate.name])
    return PlannedRunPart(
        run,
        badge(run.status),
        badge(run.then),
        [_count_chip(name, counts[name]) for name in FATES if counts[name]],
        [_row(fate) for fate in ordered[:MOST_ROWS]],
        max(len(ordered) - MOST_ROWS, 0),
    )


def _row(fate: TaskImpact) -> PlannedTaskRow:
    tone, icon = LOOKS[fate.name]
    note = _("when control comes to it") if fate.is_later else _("at once") if fate.name == AGAIN else ""
    status = badge(fate.status) if fate.name != NEW else ""
    return PlannedTaskRow(
        str(fate.key), fate.step.type, pill(tone, str(WORDS[fate.name]), icon), note, status, fate.repeats_effects
    )


def _picture(plan: OperationPlan, run: Run) -> Diagram | None:
    """The definition of the run with the fate of each step; of several turns the one that matters most."""
    definition = definition_of(run.plan_id)
    own = next((part for part in plan.runs if part.run_id == run.pk), None)
    if definition is None or own is None:
        return None
    fates = _by_step(own.fates)
    marks = {ref: _mark(fate, count) for ref, (fate, count) in fates.items()}
    seen = StepMarks(marks, _branch_marks(own.fates))
    drawn = diagram(definition.document, seen, link=lambda ref, path: f"#task-{ref}")
    for node in drawn.nodes:
        fate = fates[node.ref][0].name if node.ref in fates else node.status
        if fate in LOOKS:
            node.tone, node.icon = LOOKS[fate]
    return drawn


def _branch_marks(fates: Iterable[TaskImpact]) -> dict[str, dict[str, int]]:
    """The branches of dynamic forks by their join: how many have which fate, the one that matters most first."""
    found: dict[str, dict[str, int]] = {}
    for fate in sorted((each for each in fates if each.joined_by), key=lambda each: RANK[each.name]):
        counts = found.setdefault(fate.joined_by, {})
        counts[fate.name] = counts.get(fate.name, 0) + 1
    return found


def _mark(fate: TaskImpact, count: int) -> StepMark:
    """What is reused is drawn as what it is: done, with the way that led on from it."""
    return StepMark(fate.status if fate.name == REUSED else fate.name, count, word=str(SHORT[fate.name]))


def _by_step(fates: Iterable[TaskImpact]) -> dict[str, tuple[TaskImpact, int]]:
    found: dict[str, tuple[TaskImpact, int]] = {}
    for fate in fates:
        best, count = found.get(fate.key.ref, (fate, 0))
        found[fate.key.ref] = (min(best, fate, key=lambda each: RANK[each.name]), count + 1)
    return found
