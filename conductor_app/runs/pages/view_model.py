"""View model of a run that all tabs share: the run, the cause of its state, and the selected task."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, Subquery
from django.urls import reverse
from django.utils.translation import gettext as _

from ... import clock
from ...core.states import RUN
from ...core.step_types.human import Human
from ...insight.definitions.duration_baselines import TypicalDuration, typical_step_durations
from ...insight.durations import format_duration
from ...insight.queues.gate_verdicts import GateVerdict
from ...insight.runs.cause import Cause, run_cause
from ...insight.runs.run_keys import annotate_key_inputs, run_key
from ...insight.runs.run_lives import RunLife, run_lives
from ...insight.tasks.task_list import find_task
from ...models import ModelCall, Run, Task, WorkflowDefinition
from ...models.gates import BUDGET
from ...models.labels import with_labels
from ..ai.usage_lines import model_use_of_run
from ..badges import WAITING, mark_names, relative_time, render_badge, render_icon, running_time, status_tone
from ..documents import annotate_documents
from ..tasks.task_panel import TaskPanel, task_panel
from .run_page_query import RunPageQuery

DOCUMENTS = ("input", "output", "variables")
MAX_CHILDREN = 50
NO_TASK = "-"
"""Value of the parameter `task` that selects no task, not even the failed one."""


def run_address(run_id: str) -> str:
    """Return the address of a run's page."""
    return reverse("admin:conductor_run_change", args=[run_id])


@dataclass(frozen=True)
class RunViewModel:
    """A run, the current time, the cause of its state, the selected task, and the lives of the run, oldest first."""

    run: Run
    query: RunPageQuery
    now: int
    cause: Cause
    usual: Mapping[str, TypicalDuration]
    task: Task | None
    lives: list[RunLife]

    @property
    def chosen(self) -> str:
        return str(self.task) if self.task else ""

    @property
    def known_verdicts(self) -> dict[str, tuple[GateVerdict, ...]]:
        """Return the gate verdicts that the cause has already loaded."""
        cause = self.cause
        return {cause.shown_attempt_id: cause.shown_verdicts, cause.attempt_id: cause.verdicts}


def run_view_model(run: Run, values: Mapping[str, str]) -> RunViewModel:
    """Return the view model for an address. A failed run opens with its failed task selected."""
    now, query = clock.now(), RunPageQuery(values)
    cause = run_cause(run, now, query["task"])
    wanted = query["task"] or (cause.task if run.status in ("FAILED", "TIMED_OUT") else "")
    task = _selected_task(run, cause, wanted) if wanted and wanted != NO_TASK else None
    return RunViewModel(
        run, query, now, cause, typical_step_durations(run.name, run.version), task, run_lives(run, now)
    )


def _selected_task(run: Run, cause: Cause, name: str) -> Task | None:
    """Return the task with this name. Most pages show the one of the cause, which has been loaded."""
    known = (attempt.task for attempt in cause.attempts)
    return next((task for task in known if str(task) == name), None) or find_task(run, name)


def head_context(view_model: RunViewModel) -> dict[str, Any]:
    """Return the context of the header above the tabs."""
    run, cause = view_model.run, view_model.cause
    tone = WAITING if cause.is_waiting else status_tone(run.status)
    return {
        "run": run,
        "is_open": run.status in RUN.open,
        "badge": render_badge(run.status),
        "tone": tone,
        "icon": render_icon(tone),
        "cause": cause,
        "cause_sentence": mark_names(cause.sentence),
        "cause_address": view_model.query.address(task=cause.task, attempt=None)
        if cause.task != view_model.chosen
        else "",
        "answerable": _human_attempt(cause),
        "held_by_budget": _held_attempt(cause),
        "chosen": view_model.chosen,
        "facts": _run_facts(view_model),
        **_parent_and_children(run),
        "closed_address": view_model.query.address(task=NO_TASK, attempt=None),
    }


def _human_attempt(cause: Cause) -> str:
    """Return the id of the open human task that the run waits for, if it waits for one."""
    named = (attempt for attempt in cause.attempts if attempt.pk == cause.attempt_id)
    return next((each.pk for each in named if each.task.type == Human.type and each.ended_at is None), "")


def _held_attempt(cause: Cause) -> str:
    """Return the id of the attempt that the run waits for if a spent budget holds it."""
    is_held = any(verdict.gate == BUDGET.name and not verdict.is_open for verdict in cause.verdicts)
    return cause.attempt_id if is_held else ""


def opened_panel(view_model: RunViewModel) -> TaskPanel | None:
    """Return the panel of the selected task."""
    if view_model.task is None:
        return None
    return task_panel(view_model.run, view_model.task, view_model.query, view_model.known_verdicts, view_model.now)


def _run_facts(view_model: RunViewModel) -> list[tuple[str, Any]]:
    run, usual = view_model.run, view_model.usual.get("")
    life = view_model.lives[-1]
    later = run.begins_later(view_model.now)
    facts = [
        (_("Duration"), "" if later else running_time(life.begin, run.ended_at)),
        (_("All executions"), _total_duration(view_model.lives)),
        (_("Typical"), str(usual or "")),
        (_("Comparison"), _("slower than typical") if usual and usual.is_slow(life.duration_ms) else ""),
        (_("Starts") if later else _("Started"), relative_time(run.created_at, view_model.now)),
        (_("Ended"), relative_time(run.ended_at, view_model.now) if run.ended_at else ""),
        (_("Started by"), run.started_by),
        (_("Correlation id"), run.correlation_id),
        (_("Priority"), run.priority or ""),
        (_("Schedule"), run.schedule),
        (_("Event"), run.event),
        (_("Idempotency key"), run.idempotency_key),
        (_("Revision"), run.revision),
        (_("AI"), model_use_of_run(run) if run.has_model_calls else ""),
    ]
    return [(name, value) for name, value in facts if value not in ("", None)]


def _total_duration(lives: list[RunLife]) -> str:
    """Return how long a reopened run was open in all its lives, and the time from its start to its end."""
    if len(lives) < 2:
        return ""
    facts = {
        "open": format_duration(sum(life.duration_ms for life in lives)),
        "total": format_duration(lives[-1].end - lives[0].begin),
    }
    return _("%(open)s within %(total)s") % facts


def _parent_and_children(run: Run) -> dict[str, Any]:
    """Return the parent run and the child runs, loaded together, and their keys."""
    above, below = Q(pk=run.parent_id), Q(parent_id=run.pk) & ~Q(parent_id="")
    found = annotate_key_inputs(Run.objects.filter(above | below if run.parent_id else below))
    columns = ("id", "name", "version", "status", "created_at", "correlation_id")
    runs = found.only(*columns).order_by("created_at")[: MAX_CHILDREN + 1]
    relatives = {
        "parent": next((relative for relative in runs if relative.pk == run.parent_id), None),
        "children": [
            {"run": child, "badge": render_badge(child.status)} for child in runs if child.pk != run.parent_id
        ],
    }
    return {"relatives": relatives, "run_keys": {relative.pk: run_key(relative) for relative in runs}}


def find_readable_run(run_id: str) -> Run | None:
    """Return the run with everything that its page shows, and the address of its definition."""
    definitions = WorkflowDefinition.objects.filter(name=OuterRef("name"), version=OuterRef("version"))
    runs = Run.objects.defer_payloads().annotate(
        definition_pk=Subquery(definitions.values("pk")[:1]),
        has_model_calls=Exists(ModelCall.objects.filter(run_id=OuterRef("pk")))
        | Exists(ModelCall.objects.filter(root_id=OuterRef("pk"))),
    )
    return with_labels(annotate_documents(runs, DOCUMENTS)).filter(pk=run_id).first()
