"""What all tabs of a run share: the run, the cause of its state, the selected task; and strips of recent runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

from django.core.paginator import Page
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.visibility import sees_all_runs, visible
from ...core.states import RUN
from ...core.step_types.waiting import Human
from ...definitions.durations import TypicalDuration, typical_step_durations
from ...definitions.models import WorkflowDefinition
from ...definitions.store import parsed_definition
from ...explanations.cause import Cause, run_cause
from ...tasks.gates import BUDGET
from ...tasks.pages.task_panel import TaskPanel, task_panel
from ...tasks.queries.tasks import find_task
from ...tasks.queries.waiting import GateVerdict
from ...utils import clock, process_state
from ...utils.formatting import DAY_RANGE, TimeRange, format_duration
from ...web.badges import (
    WAITING,
    exact_time,
    format_count,
    format_status,
    mark_names,
    relative_time,
    render_badge,
    render_icon,
    running_time,
    status_tone,
)
from ...web.charts import (
    ChartMarker,
    ChartSeries,
    DurationChart,
    TrendChart,
    chosen_range,
    range_links,
    range_of_data,
)
from ...web.documents import annotate_documents
from ...web.links import RunPageQuery, render_trace
from ..models import Run, Task, with_labels
from ..queries.recent import (
    MAX_COUNTED,
    OPEN,
    REOPENED,
    SAMPLED_RUNS,
    STRIP_LENGTH,
    RecentRun,
    annotate_key_inputs,
    durations_by_bar,
    failed_run_id,
    failure_workflow_ids,
    run_key,
    runs_by_result,
    times_of_runs,
)
from ..timeline.queries import RunLife, run_lives, slow_runs

DOCUMENTS = ("input", "output", "variables")
MAX_CHILDREN = 50
NO_TASK = "-"
"""Value of the parameter `task` that selects no task, not even the failed one."""


class ModelUse(NamedTuple):
    """How the page of a run says what it used of models. `has_calls`: True for a run with calls, in a query of runs."""

    has_calls: Q
    describe: Callable[[Run], str]


_model_use: process_state.Wiring[ModelUse | None] = process_state.wiring(None)


def register_use_of_run(use: ModelUse) -> None:
    """Register how the page of a run says what it used of models."""
    _model_use.value = use


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
    """Return the view model for an address. It selects the failed task, or the one that the run waits at."""
    now, query = clock.now(), RunPageQuery(values)
    cause = run_cause(run, now, query["task"])
    wanted = query["task"] or (cause.task if cause.is_stuck or run.status in ("FAILED", "TIMED_OUT") else "")
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
        "run_key": run_key(run).text,
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
        "chosen": view_model.task.label if view_model.task else "",
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


def status_chips(counts: Mapping[str, int], query: RunPageQuery) -> list[dict[str, Any]]:
    """Return the filters of the tasks by status, with their numbers."""
    return [
        {
            "label": _("All"),
            "badge": render_badge(status) if status else None,
            "count": count,
            "address": query.address(status=status, page=None, task=NO_TASK),
            "is_chosen": status == query["status"],
        }
        for status, count in [("", sum(counts.values())), *sorted(counts.items())]
    ]


def window_context(window: Page[Any], query: RunPageQuery) -> dict[str, Any]:
    """Return the context of a page of rows, with the addresses of the pages before and after it."""
    return {
        "window": window,
        "earlier": query.address(page=window.previous_page_number()) if window.has_previous() else "",
        "later": query.address(page=window.next_page_number()) if window.has_next() else "",
        "unfiltered_address": query.address(status=None, page=None),
    }


def opened_panel(view_model: RunViewModel) -> TaskPanel | None:
    if view_model.task is None:
        return None
    cause = view_model.cause
    persons = {cause.attempt_id: cause.person} if cause.person else {}
    known = view_model.known_verdicts
    reopened = {life.begin for life in view_model.lives[1:]}
    return task_panel(view_model.run, view_model.task, view_model.query, known, view_model.now, persons, reopened)


def _run_facts(view_model: RunViewModel) -> list[tuple[str, Any]]:
    run, usual = view_model.run, view_model.usual.get("")
    later = run.begins_later(view_model.now)
    model_use = _model_use.value
    duration = running_time(run.created_at + run.idle_ms, run.ended_at)
    is_slow = usual is not None and bool(slow_runs([run], {(run.name, run.version): usual}, view_model.now))
    slow = format_html('<span class="slow">{}</span>', _("slower than typical")) if is_slow else ""
    facts = [
        (_("Duration"), "" if later else format_html("{} {}", duration, slow)),
        (_("Typical"), str(usual or "")),
        (_("Executions"), _describe_lives(view_model.lives)),
        (_("Starts") if later else _("Started"), relative_time(run.created_at, view_model.now)),
        (_("Ended"), relative_time(run.ended_at, view_model.now) if run.ended_at else ""),
        (_("Started by"), run.started_by),
        (_("Priority"), run.priority or ""),
        (_("Schedule"), run.schedule),
        (_("Event"), run.event),
        (_("Idempotency key"), run.idempotency_key),
        (_("Revision"), run.revision),
        (_("Trace"), render_trace(run.traceparent)),
        (_("AI"), model_use.describe(run) if model_use and run.has_model_calls else ""),
    ]
    return [(name, value) for name, value in facts if value not in ("", None)]


def _describe_lives(lives: list[RunLife]) -> str:
    """Return how often a reopened run was executed, the time from its first start to its end, and the last execution.

    The duration of the run is less than that time: it does not count the time between the executions.
    """
    total, last = lives[-1].end - lives[0].begin, lives[-1].duration_ms
    facts = {"count": len(lives), "total": format_duration(total), "last": format_duration(last)}
    return _("%(count)s in %(total)s, the last one %(last)s") % facts if len(lives) > 1 else ""


def _parent_and_children(run: Run) -> dict[str, Any]:
    """Return parent, children, failure workflows and the failed run that the actor may see, loaded together."""
    definition = parsed_definition(run.resolved_definition_id)
    handlers = failure_workflow_ids(run) if definition and definition.document.get("failureWorkflow") else []
    failed_id = failed_run_id(run)
    others, below = [id for id in (run.parent_id, failed_id, *handlers) if id], Q(parent_id=run.pk) & ~Q(parent_id="")
    found = annotate_key_inputs(visible(Run.objects.filter(Q(pk__in=others) | below if others else below)))
    columns = ("id", "name", "version", "status", "created_at", "correlation_id")
    runs = found.only(*columns).order_by("created_at")[: MAX_CHILDREN + 1]
    relatives = {
        "parent": next((relative for relative in runs if relative.pk == run.parent_id), None),
        "failed": next((relative for relative in runs if relative.pk == failed_id), None),
        "handlers": [
            {"run": relative, "badge": render_badge(relative.status)} for relative in runs if relative.pk in handlers
        ],
        "children": [{"run": child, "badge": render_badge(child.status)} for child in runs if child.pk not in others],
    }
    return {"relatives": relatives, "run_keys": {relative.pk: run_key(relative) for relative in runs}}


def find_readable_run(run_id: str) -> Run | None:
    """Return a run that the actor may see with everything on its page, and the address of its definition."""
    definitions = WorkflowDefinition.objects.filter(name=OuterRef("name"), version=OuterRef("version"))
    # Run declares both names, because callers get plain runs.
    runs = Run.objects.defer_payloads().annotate(  # type: ignore[no-redef]  # see above
        definition_pk=Subquery(definitions.values("pk")[:1])
    )
    if model_use := _model_use.value:
        runs = runs.annotate(has_model_calls=model_use.has_calls)  # type: ignore[no-redef]  # see above
    found = with_labels(annotate_documents(annotate_key_inputs(runs), DOCUMENTS)).filter(pk=run_id)
    return visible(found).first()


def no_such_run(run_id: str) -> str:
    """Return the sentence for a run that the actor cannot open. It is the same whether the run exists or not."""
    if sees_all_runs():
        return _("No such run: %(id)s.") % {"id": run_id[:64]}
    return _("No run %(id)s exists, or your grants do not include its workflow.") % {"id": run_id[:64]}


BAR_WIDTH, HEIGHT, LEAST = 6, 28, 4


def history_strip(runs: Sequence[RecentRun], now: int, is_in_list: bool = True) -> SafeString:
    """Return the strip. The links of a strip in a list are not stops of the Tab key, because there are too many."""
    if not runs:
        return mark_safe('<span class="muted">–</span>')
    longest = longest_duration(runs, now)
    first = STRIP_LENGTH - len(runs)
    bars = (
        (
            reverse("admin:conductor_run_change", args=[run.id]),
            mark_safe(' tabindex="-1"') if is_in_list else "",
            describe_run(run, now),
            place * BAR_WIDTH,
            HEIGHT,
            run_tone(run),
            place * BAR_WIDTH + 0.5,
            HEIGHT - height,
            height,
        )
        for place, run in enumerate(runs, first)
        for height in [bar_height(run.duration_ms(now), longest, HEIGHT)]
    )
    drawn = format_html_join(
        "",
        '<a href="{}"{}><title>{}</title><rect class="room" x="{}" width="6" height="{}"></rect>'
        '<rect class="{}" x="{}" y="{}" width="5" height="{}" rx="1"></rect></a>',
        bars,
    )
    width = STRIP_LENGTH * BAR_WIDTH
    return format_html(
        '<svg class="strip" width="{}" height="{}" role="group" aria-label="{}">{}</svg>',
        width,
        HEIGHT,
        _summarize(runs),
        drawn,
    )


def run_tone(run: RecentRun) -> str:
    """Return the color of a run in charts, which is that of the results."""
    return "repaired" if run.is_repaired else status_tone(run.status)


def describe_run(run: RecentRun, now: int) -> str:
    """Return status, duration, version and start of a run in one line."""
    status = f"{format_status(run.status)} ({REPAIRED_LABEL})" if run.is_repaired else format_status(run.status)
    facts = (status, format_duration(run.duration_ms(now)), f"v{run.version}")
    return " · ".join((*facts, exact_time(run.created_at)))


def longest_duration(runs: Sequence[RecentRun], now: int) -> int:
    """Return the duration of the highest bar: of the runs that ended, because one that waits would hide the others."""
    ended = [run.duration_ms(now) for run in runs if run.ended_at is not None]
    return max(ended or [run.duration_ms(now) for run in runs]) or 1


def bar_height(duration_ms: int, longest_ms: int, height: int) -> int:
    """Return the height of a bar. It grows with the square root, so that short runs beside long ones stay visible."""
    return max(round(height * sqrt(min(duration_ms / longest_ms, 1))), LEAST)


def _summarize(runs: Sequence[RecentRun]) -> str:
    failed = sum(status_tone(run.status) == "failed" for run in runs)
    text = ngettext("Last run, %(failed)s failed", "Last %(count)s runs, %(failed)s failed", len(runs))
    return text % {"count": len(runs), "failed": failed}


REPAIRED_LABEL = gettext_lazy("Failed, then retried")
RESULT_SERIES = {
    "completed": (gettext_lazy("Completed"), "succeeded", "status=COMPLETED"),
    "failed": (gettext_lazy("Failed"), "failed", "status=FAILED,TIMED_OUT"),
    REOPENED: (REPAIRED_LABEL, "repaired", "status=COMPLETED,TERMINATED,RUNNING,PAUSED"),
    "terminated": (gettext_lazy("Terminated"), "stopped", "status=TERMINATED"),
    OPEN: (gettext_lazy("Open"), "active", "status=RUNNING,PAUSED"),
}
"""The label and the color of each result, and the filter of the list of runs."""
CHART_LABELS = {"created_at": gettext_lazy("Started runs by result"), "ended_at": gettext_lazy("Ended runs by result")}


def results_chart(
    request: HttpRequest,
    runs: QuerySet[Run],
    filters: Mapping[str, str],
    column: str = "created_at",
    markers: Sequence[ChartMarker] = (),
) -> TrendChart:
    """Return the chart of runs by result in the range of the address. Each part of a bar leads to its runs.

    Without a range in the address, it is that of the runs. `column`: the time that is counted. `filters`: the filters
    of the list that show the same runs.
    """
    now = clock.now()
    chosen = chosen_range(request, "") or _range_of_runs(runs, column, now)
    time_range = TimeRange.aligned(chosen, now)
    counts, is_cut = runs_by_result(runs, time_range, column)
    moment = "started" if column == "created_at" else "ended"
    links = [
        reverse(
            "admin:conductor_run_changelist",
            query={**filters, f"{moment}_since": start, f"{moment}_before": start + time_range.step},
        )
        for start in time_range.starts()
    ]
    return TrendChart(
        str(CHART_LABELS[column]),
        time_range,
        [
            ChartSeries(str(label), tone, counts[result], _query_of(result, query, column))
            for result, (label, tone, query) in RESULT_SERIES.items()
            if (result != OPEN or column == "created_at") and (result != REOPENED or any(counts[result]))
        ],
        markers=markers,
        links=links,
        note=_("Only the newest %(count)s runs were counted.") % {"count": format_count(MAX_COUNTED)} if is_cut else "",
        ranges=range_links(request, chosen),
    )


def _query_of(result: str, query: str, column: str) -> str | None:
    """Return the filter for the rows of a result. No filter has the time of the failure of a reopened run."""
    if column == "ended_at":
        return None if result == REOPENED else query
    return query if result == "failed" else f"{query}&retried={'yes' if result == REOPENED else 'no'}"


def _range_of_runs(runs: QuerySet[Run], column: str, now: int) -> str:
    """Return the range that fits the runs. No index has the ends of the runs that an actor of some workflows sees."""
    if column == "ended_at" and not sees_all_runs():
        return DAY_RANGE
    times = times_of_runs(runs, column)
    return range_of_data(*times, now) if times else DAY_RANGE


def durations_chart(results: TrendChart, runs: QuerySet[Run], column: str = "created_at") -> DurationChart:
    """Return the chart of the durations of completed runs below that of their results. A bar leads to its runs."""
    medians, high, is_cut = durations_by_bar(runs, results.time_range, column)
    return DurationChart(
        _("Durations of completed runs"),
        results.time_range,
        [ChartSeries("p95", "scheduled", high), ChartSeries("p50", "started", medians)],
        markers=results.markers,
        links=[f"{link}&status=COMPLETED" for link in results.links],
        note=_("Of the newest %(count)s runs of each bar.") % {"count": SAMPLED_RUNS} if is_cut else "",
    )
