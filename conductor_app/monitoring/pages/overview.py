"""The overview: key figures, activity, everything that needs attention, and the first steps on an empty server.

Each tile may fail without affecting the others. The first steps are a first run, a sample workflow, and a worker of the
user's own.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.permissions import TASK_DEF
from ...access.visibility import may, sees_all_runs, visible, visible_names
from ...core.definition import structure_of
from ...core.errors import Invalid, RequestRefused
from ...core.failure_grouping import informative_line
from ...definitions import commands as definition_commands
from ...definitions.models import WorkflowDefinition
from ...definitions.pages.versions import newest_version_markers
from ...definitions.queries import ended_runs_by_name
from ...explanations.cause import failure_reasons
from ...explanations.debugger import stopped_runs
from ...failures.pages.groups import render_failure_message, render_state_pill
from ...failures.queries import (
    RETRIED,
    ListedFailureGroup,
    count_failed_with_child,
    group_status,
    most_harmful_groups,
)
from ...human_tasks.waiting_queries import human_task_inbox
from ...runs.commands.start import StartRequest, start_run
from ...runs.models import Run
from ...runs.pages.view_model import durations_chart, results_chart
from ...settings import conf
from ...tasks.models import QueueHold
from ...tasks.queries.queue_states import QueueState, count_blocked_runs, list_queues
from ...tasks.queries.workers import builds_in_use
from ...telemetry import log_context
from ...utils import clock
from ...utils.formatting import HOUR, LENGTHS, MONTH_RANGE, format_decimal, format_duration
from ...web.badges import format_count, format_lower_bound, relative_time, render_badge
from ...web.charts import TrendChart, build_markers, sparkline
from ...web.links import failure_group_address, queue_address, run_address
from ...web.pages import MAX_COUNTED, Page, require_permission, show_refusal
from ..queries.health import (
    TIMER_SWEEPS,
    EngineHealth,
    OpenWork,
    count_open_work,
    health_for,
    is_sweep_late,
    operations_to_approve,
)
from ..queries.system import SlowDefinition, overdue_runs, slowest_definitions
from ..samples import FIRST_RUN, SAMPLE_NAME, SAMPLE_TASK, SAMPLE_WORKFLOW, WORKER_SAMPLES

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OverviewTile:
    """One tile: its label, its template and the context of the template."""

    name: str
    template: str
    context: dict[str, Any] = field(default_factory=dict)
    is_broken: bool = False


def build_tile(name: str, template: str, build_context: Callable[[], dict[str, Any]]) -> OverviewTile:
    """Return the tile. If its context cannot be built, the tile shows an error with the request id."""
    try:
        return OverviewTile(name, template, build_context())
    except Exception:
        log.exception("tile_failed", extra={"tile": template})
        error_context = {"what": name, "request_id": log_context.request_id(), "retry": reverse("admin:index")}
        return OverviewTile(name, "ops/web/states/error.html", error_context, is_broken=True)


PERMISSION, START_PERMISSION = "conductor.add_workflowdefinition", "conductor.execute_workflowdefinition"
REASON = "sample workflow"


class FirstStepsPage(Page):
    """The first steps, which follow what the user does: a definition, a poll, a run."""

    name, permission, template = "first_steps", "conductor.view_run", "ops/monitoring/overview/first_steps_page.html"
    shows_granted_rows = True
    title = gettext_lazy("Get started")
    live_template = "ops/monitoring/overview/first_steps.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return {"shown": first_steps(request, visible_queues(), counts_runs=False)}

    def post(self, request: HttpRequest) -> HttpResponse:
        """Create the sample workflow, or start a run that needs no worker.

        Raises:
            PermissionDenied: when the user may not create definitions.
        """
        require_permission(request, PERMISSION)
        by, address = request.user.get_username(), reverse("admin:index")
        try:
            if request.POST.get("do") == "run_sample":
                if not WorkflowDefinition.objects.filter(name=FIRST_RUN["name"]).exists():
                    definition_commands.save_workflow(FIRST_RUN, by, overwrite=False, reason=REASON)
                run_id = start_run(StartRequest(FIRST_RUN["name"], input={"name": by}, started_by=by), by)
                address = f"{run_address(run_id)}?tab=diagram&task=-"
                messages.success(request, _("Tasks turn green as they complete. The next step is on the overview."))
            elif request.POST.get("do") == "create_sample":
                definition_commands.save_task(SAMPLE_TASK, by, overwrite=False, reason=REASON)
                definition_commands.save_workflow(SAMPLE_WORKFLOW, by, overwrite=False, reason=REASON)
                messages.success(request, _("Sample workflow created. Start the worker, then start a run."))
            else:
                raise Invalid(_("Missing or unknown action."))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(address)


def visible_queues() -> list[QueueState]:
    """Return the queues of the task types that the current actor may see."""
    return _visible_among(list_queues())


def _visible_among(states: list[QueueState]) -> list[QueueState]:
    if sees_all_runs() or not states:
        return states
    types = set(visible_names(TASK_DEF, {_task_type(queue.name) for queue in states}))
    return [queue for queue in states if _task_type(queue.name) in types]


def _task_type(queue: str) -> str:
    return queue.rpartition(":")[2]


def first_steps(request: HttpRequest, states: list[QueueState], counts_runs: bool) -> dict[str, Any]:
    """Return which of the first steps a new user has done. `counts_runs`: True if there are runs for certain.

    They end with a run of a workflow of one's own, or with a run and a worker of the sample workflow.

    The pollers of the built-in workers do not count.
    """
    definitions = WorkflowDefinition.objects.order_by("-pk").only("pk", "name")
    if not sees_all_runs():
        definitions = visible(definitions)
    newest = definitions.first()
    polled = [queue for queue in states if queue.polled_at and not _is_built_in(queue.name)]
    has_runs = counts_runs or (newest is not None and visible(Run.objects.all()).exists())
    samples = (SAMPLE_NAME, FIRST_RUN["name"])
    has_own = any(_task_type(queue.name) != SAMPLE_TASK["name"] for queue in polled) or (
        has_runs and definitions.exclude(name__in=samples).exists()
    )
    has_started = has_runs and not has_own and visible(Run.objects.filter(name=SAMPLE_NAME)).exists()
    is_sample = newest is not None and newest.name == FIRST_RUN["name"]
    own = definitions.exclude(name=FIRST_RUN["name"]).first() if is_sample else newest
    return {
        "is_new": not has_runs or not (has_own or (polled and has_started)),
        "has_started": has_started,
        "has_definitions": own is not None,
        "definition": own,
        "has_workers": bool(polled),
        "is_next_worker": own is not None and not polled,
        "polled": max(polled, key=lambda queue: queue.polled_at or 0, default=None),
        "has_runs": has_runs,
        "may_start": own is not None and may(request.user, START_PERMISSION, own),
        "needs_key": conf.api_access != "open",
        "samples": WORKER_SAMPLES,
    }


def _is_built_in(queue: str) -> bool:
    return structure_of(_task_type(queue)).is_built_in


class OverviewActivityPage(Page):
    """Fragment of the overview that loads after the page. Each of its tiles may fail without affecting the others."""

    name, permission, template = (
        "overview_activity",
        "conductor.view_run",
        "ops/monitoring/overview/tile_columns_page.html",
    )
    shows_granted_rows = True
    title = gettext_lazy("Activity")
    live_template = "ops/monitoring/overview/tile_columns.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now = clock.now()
        activity = build_tile(
            _("Activity"),
            "ops/monitoring/overview/activity.html",
            lambda: {"charts": _activity_charts(request, now)},
        )
        durations = [
            build_tile(
                _("Slow workflows"),
                "ops/monitoring/overview/slow_workflows.html",
                lambda: _slow_definitions_context(now),
            ),
            build_tile(
                _("Open for longer than typical"),
                "ops/monitoring/overview/overdue_runs.html",
                lambda: {"rows": _overdue_run_rows(now)},
            ),
        ]
        shown = [tile for tile in durations if tile.is_broken or tile.context["rows"]]
        return {"columns": [[activity], *([tile] for tile in shown)]}


def _activity_charts(request: HttpRequest, now: int) -> list[TrendChart]:
    """Return the results and the durations of runs, with the new versions of workflows and builds of workers."""
    runs, days = visible(Run.objects.all()), LENGTHS[MONTH_RANGE]
    markers = [*newest_version_markers(now - days[0] * days[1]), *build_markers(builds_in_use())]
    results = results_chart(request, runs, {}, "ended_at", markers)
    return [results, durations_chart(results, runs, "ended_at")]


def filtered_runs_address(**filters: str) -> str:
    """Return the address of the list of runs with these filters."""
    return reverse("admin:conductor_run_changelist", query=filters)


def _overdue_run_rows(now: int) -> list[dict[str, Any]]:
    return [{"run": run, "usual": usual, "address": run_address(run.pk)} for run, usual in overdue_runs(now)]


def _slow_definitions_context(now: int) -> dict[str, Any]:
    return {"rows": [_slow_definition_row(each, now) for each in slowest_definitions(now)]}


def _slow_definition_row(each: SlowDefinition, now: int) -> dict[str, Any]:
    filters = {"name": each.name, "version": str(each.version), "status": "COMPLETED"}
    return {
        "slow": each,
        "address": filtered_runs_address(**filters, ended_since=str(now - HOUR)),
        "factor": format_decimal(each.factor) if each.factor < 10 else format_count(round(each.factor)),
    }


MAX_FAILURES = 8
MAX_WAITING_TASKS = 100


class AttentionPage(Page):
    """The list of what needs attention, which the overview refreshes."""

    name, permission, template = (
        "overview_attention",
        "conductor.view_run",
        "ops/monitoring/overview/attention_page.html",
    )
    shows_granted_rows = True
    title = gettext_lazy("Needs attention")
    live_template = "ops/monitoring/overview/attention.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return overview_context(request)


def overview_context(request: HttpRequest) -> dict[str, Any]:
    """Return the context of the overview: key figures, first steps, and what needs attention."""
    now, health = clock.now(), health_for(request)
    queue_tile = build_tile(_("Queues"), "", lambda: {"states": visible_queues()})
    states: list[QueueState] = queue_tile.context.get("states", [])
    open_work = cache(lambda: count_open_work(MAX_COUNTED + 1))
    numbers = build_tile(
        _("Key figures"), "ops/monitoring/overview/key_figures.html", lambda: _numbers_context(states, open_work())
    )
    concerns = [
        build_tile(
            _("Background jobs"),
            "ops/monitoring/overview/failing_sweeps.html",
            lambda: {"rows": _sweep_rows(health, now)},
        ),
        build_tile(
            _("Failures"), "ops/monitoring/overview/failures.html", lambda: _failure_section(now, numbers.context)
        ),
        build_tile(
            _("Undelivered messages"),
            "ops/monitoring/overview/undelivered_messages.html",
            lambda: {"count": health.undelivered},
        ),
        build_tile(
            _("Queues"),
            "ops/monitoring/overview/queues_without_workers.html",
            lambda: {"rows": _unpolled_queues(states, now)},
        ),
        build_tile(
            _("Breakpoints"),
            "ops/monitoring/overview/breakpoints.html",
            lambda: {"rows": _stopped_run_rows(now)},
        ),
        build_tile(
            _("Human tasks"),
            "ops/monitoring/overview/human_tasks.html",
            lambda: _waiting_tasks_context(request, open_work(), now),
        ),
        build_tile(
            _("Pending approvals"), "ops/monitoring/overview/approvals.html", lambda: _pending_operations(open_work())
        ),
    ]
    if queue_tile.is_broken:
        concerns[3] = queue_tile
    return {
        "numbers": numbers,
        "concerns": concerns,
        "is_all_clear": not any(each.is_broken or any(each.context.values()) for each in concerns),
        "steps": build_tile(
            _("Get started"),
            "ops/monitoring/overview/first_steps.html",
            lambda: first_steps(request, states, _counts_runs(numbers.context)),
        ),
    }


def _numbers_context(states: list[QueueState], open_work: OpenWork) -> dict[str, Any]:
    return {
        "counts": _status_counts(open_work),
        # A queue holds tasks of other people's workflows too.
        "counts_tasks": sees_all_runs(),
        "waiting": sum(queue.pending for queue in states),
        "waiting_words": format_lower_bound(
            sum(queue.counted for queue in states), any(queue.has_more for queue in states)
        ),
        "leased": sum(queue.leased for queue in states),
    }


def _counts_runs(numbers: dict[str, Any]) -> bool:
    """Return True if the key figures count at least one run."""
    return any(count["count"] for count in numbers.get("counts", ()))


def _sweep_rows(health: EngineHealth, now: int) -> list[dict[str, Any]]:
    return [
        {
            "sweep": sweep,
            "is_late": is_sweep_late(sweep, now),
            "began": relative_time(sweep.began_at, now),
            "holds_timers": sweep.name in TIMER_SWEEPS,
        }
        for sweep in health.troubled_sweeps
    ]


def _unpolled_queues(states: list[QueueState], now: int) -> list[dict[str, Any]]:
    """Return the paused queues, even if nothing waits in them, and those with pending tasks that no worker polls."""
    holds = QueueHold.objects.filter(until_at__gt=now).in_bulk()
    unused = [QueueState(name) for name in holds.keys() - {queue.name for queue in states}]
    stuck = [queue for queue in states if queue.name in holds or queue.is_neglected(now)]
    runs = count_blocked_runs([queue.name for queue in stuck if queue.pending]) if stuck else {}
    stuck += sorted(_visible_among(unused), key=lambda queue: queue.name)
    rows = [
        {
            "queue": queue,
            "address": queue_address(queue.name),
            "oldest": format_duration(now - (queue.oldest_at or now)),
            "unpolled": format_duration(now - queue.polled_at) if queue.polled_at else "",
            "hold": holds.get(queue.name),
            "runs": runs.get(queue.name, 0),
        }
        for queue in stuck
    ]
    return sorted(rows, key=lambda row: -row["runs"])


def _stopped_run_rows(now: int) -> list[dict[str, Any]]:
    return [
        {
            "stopped": each,
            "address": f"{run_address(each.run.pk)}?tab=debugger",
            "left": format_duration(max(each.until - now, 0)),
        }
        for each in stopped_runs(MAX_FAILURES)
    ]


def _waiting_tasks_context(request: HttpRequest, open_work: OpenWork, now: int) -> dict[str, Any]:
    """Return the number of open human tasks, of those for the user or a group of the user, and of the overdue ones."""
    count, user = open_work.human_tasks, request.user
    task_views = human_task_inbox(now).task_views if count else []
    mine = [each for each in task_views if each.is_for_user(user.get_username())]
    assignees = [each.assignment.assignee for each in task_views]
    has_groups = any(each is not None and each.is_group for each in assignees)
    groups = set(user.groups.values_list("name", flat=True)) if has_groups else set()
    return {
        "count": min(count, MAX_WAITING_TASKS),
        "is_cut": count > MAX_WAITING_TASKS,
        "mine": len(mine),
        "of_groups": sum(each.is_for_groups(groups) for each in task_views),
        "overdue": sum(each.is_overdue(now) for each in task_views),
    }


def _pending_operations(open_work: OpenWork) -> dict[str, Any]:
    return {"rows": list(operations_to_approve()[:MAX_FAILURES]) if open_work.approvals else []}


def _failure_section(now: int, numbers: dict[str, Any]) -> dict[str, Any]:
    """Return the open failure groups by impact, or single failed runs until the first group exists.

    Groups that have ended no run are folded into one row.
    """
    listed = most_harmful_groups(now, MAX_FAILURES)
    ended = ended_runs_by_name({each.group.definition for each in listed}, now)
    rows = [_failure_row(each, ended, now) for each in listed]
    group_rows = [row for row in rows if row["status"] != RETRIED]
    recovered = [row for row in rows if row["status"] == RETRIED]
    is_none = any(count["status"] == "FAILED" and not count["count"] for count in numbers.get("counts", ()))
    return {
        "groups": group_rows,
        "recovered": recovered,
        "recovered_runs": sum(row["affected"] for row in recovered),
        "with_child": count_failed_with_child(now) if group_rows else 0,
        "runs": [] if listed or is_none else _failed_run_rows(now),
    }


def _failure_row(listed: ListedFailureGroup, counts: Mapping[str, int], now: int) -> dict[str, Any]:
    group, lost = listed.group, len(listed.impact.lost)
    ended = counts.get(group.definition, 0)
    return {
        "group": group,
        "address": failure_group_address(group.pk),
        "message": render_failure_message(group),
        "spark": sparkline(listed.hours, _("Failures per hour, last 24 hours"), "bad"),
        "lost": lost,
        "newest": run_address(listed.impact.newest_lost_run) if listed.impact.newest_lost_run else "",
        "affected": len(listed.impact.affected),
        "percent": min(round(100 * lost / ended), 100) if ended else None,
        "status": group_status(group, listed.impact, now),
        "state": render_state_pill(group, listed.impact, now),
        "at": relative_time(group.last_at, now),
    }


def _failed_run_rows(now: int) -> list[dict[str, Any]]:
    rows = Run.objects.defer_payloads().filter(status="FAILED").defer("input", "output", "variables", "domains")
    runs = list(visible(rows).order_by("-created_at")[:MAX_FAILURES])
    failed = failure_reasons(runs) if runs else {}
    return [_failed_run_row(run, *failed.get(run.pk, ("", informative_line(run.reason, 200))), now) for run in runs]


def _failed_run_row(run: Run, task: str, reason: str, now: int) -> dict[str, Any]:
    return {
        "run": run,
        "address": run_address(run.pk),
        "at": relative_time(run.ended_at, now),
        "task": task,
        "reason": reason,
    }


def _status_counts(open_work: OpenWork) -> list[dict[str, Any]]:
    """Return the number of open runs per status, counted up to a limit."""
    return [
        {
            "status": status,
            "badge": render_badge(status),
            "count": min(count, MAX_COUNTED),
            "is_capped": count > MAX_COUNTED,
        }
        for status, count in open_work.runs.items()
    ]
