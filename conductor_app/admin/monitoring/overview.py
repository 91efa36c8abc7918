"""The overview: key figures and everything that needs attention. Each tile may fail without affecting the others."""

from typing import Any

from django.utils.translation import gettext as _

from ... import clock
from ...core.informative_lines import informative_line
from ...core.states import FAILURE
from ...insight.durations import format_duration
from ...insight.monitoring.health import EngineHealth, is_sweep_late
from ...insight.queues.queue_states import QueueState, list_queues
from ...insight.runs.cause import failure_reasons
from ...insight.tasks.waiting_for_people import count_overdue, waiting_attempts
from ...models import BulkOperation, FailureGroup, QueueHold, Run, WorkflowDefinition
from ..badges import format_lower_bound, relative_time, render_badge
from ..paginator import MAX_COUNTED
from ..queues.queue_list import queue_address
from ..runs.run_page import run_address
from ..tiles import build_tile

MAX_FAILURES = 8
MAX_WAITING_TASKS = 100


def overview_context(health: EngineHealth) -> dict[str, Any]:
    """Return the context of the overview: key figures, first steps, and what needs attention."""
    now = clock.now()
    queue_tile = build_tile(_("Queues"), "", lambda: {"states": list_queues()})
    states: list[QueueState] = queue_tile.context.get("states", [])
    numbers = build_tile(_("Key figures"), "ops/overview/key_figures.html", lambda: _numbers_context(states))
    concerns = [
        build_tile(
            _("Background jobs"), "ops/overview/failing_sweeps.html", lambda: {"rows": _sweep_rows(health, now)}
        ),
        build_tile(
            _("Undelivered messages"),
            "ops/overview/undelivered_messages.html",
            lambda: {"count": health.undelivered},
        ),
        build_tile(
            _("Queues"), "ops/overview/queues_without_workers.html", lambda: {"rows": _unpolled_queues(states, now)}
        ),
        build_tile(_("Human tasks"), "ops/overview/human_tasks.html", lambda: _waiting_tasks_context(now)),
        build_tile(_("Pending approvals"), "ops/overview/approvals.html", _pending_operations),
        build_tile(_("Failures"), "ops/overview/failures.html", lambda: _failure_section(now, numbers.context)),
    ]
    if queue_tile.is_broken:
        concerns[2] = queue_tile
    return {
        "numbers": numbers,
        "concerns": concerns,
        "is_all_clear": not any(each.is_broken or any(each.context.values()) for each in concerns),
        "steps": build_tile(
            _("Get started"), "ops/overview/first_steps.html", lambda: _first_steps_context(states, numbers.context)
        ),
    }


def _numbers_context(states: list[QueueState]) -> dict[str, Any]:
    return {
        "counts": _status_counts(),
        "waiting": sum(queue.pending for queue in states),
        "waiting_words": format_lower_bound(
            sum(queue.counted for queue in states), any(queue.has_more for queue in states)
        ),
        "leased": sum(queue.leased for queue in states),
    }


def _first_steps_context(states: list[QueueState], numbers: dict[str, Any]) -> dict[str, Any]:
    """Return which of the first steps a new user has done."""
    some = any(count["count"] for count in numbers.get("counts", ()))
    has_definitions = some or WorkflowDefinition.objects.exists()
    return {
        "has_definitions": has_definitions,
        "has_workers": any(queue.polled_at for queue in states),
        "has_runs": some or (has_definitions and Run.objects.exists()),
    }


def _sweep_rows(health: EngineHealth, now: int) -> list[dict[str, Any]]:
    return [
        {"sweep": sweep, "is_late": is_sweep_late(sweep, now), "began": relative_time(sweep.began_at, now)}
        for sweep in health.troubled_sweeps
    ]


def _unpolled_queues(states: list[QueueState], now: int) -> list[dict[str, Any]]:
    """Return queues with pending tasks that no worker polls or that are paused."""
    waiting = [queue for queue in states if queue.pending]
    holds = QueueHold.objects.filter(until_at__gt=now).in_bulk() if waiting else {}
    return [
        {
            "queue": queue,
            "address": queue_address(queue.name),
            "oldest": format_duration(now - (queue.oldest_at or now)),
            "hold": holds.get(queue.name),
        }
        for queue in waiting
        if queue.name in holds or queue.is_neglected(now)
    ]


def _waiting_tasks_context(now: int) -> dict[str, Any]:
    count = waiting_attempts().order_by()[: MAX_WAITING_TASKS + 1].count()
    return {
        "count": min(count, MAX_WAITING_TASKS),
        "is_cut": count > MAX_WAITING_TASKS,
        "overdue": count_overdue(now) if count else 0,
    }


def _pending_operations() -> dict[str, Any]:
    return {"rows": list(BulkOperation.objects.waiting_for_approval()[:MAX_FAILURES])}


def _failure_section(now: int, numbers: dict[str, Any]) -> dict[str, Any]:
    """Return the open failure groups, or single failed runs until the first group exists."""
    open_groups = FailureGroup.objects.not_merged().filter(state__in=sorted(FAILURE.open))
    groups = open_groups.order_by("-last_at")[:MAX_FAILURES]
    group_rows = [{"group": group, "at": relative_time(group.last_at, now)} for group in groups]
    is_none = any(count["status"] == "FAILED" and not count["count"] for count in numbers.get("counts", ()))
    return {"groups": group_rows, "runs": [] if group_rows or is_none else _failed_run_rows(now)}


def _failed_run_rows(now: int) -> list[dict[str, Any]]:
    defer_payloads = (
        Run.objects.defer_payloads().filter(status="FAILED").defer("input", "output", "variables", "domains")
    )
    runs = list(defer_payloads.order_by("-created_at")[:MAX_FAILURES])
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


def _status_counts() -> list[dict[str, Any]]:
    """Return the number of open runs per status, counted up to a limit."""
    return [
        {"status": status, "badge": render_badge(status), **_count_runs(status)}
        for status in ("RUNNING", "PAUSED", "FAILED")
    ]


def _count_runs(status: str) -> dict[str, Any]:
    count = Run.objects.filter(status=status).order_by()[: MAX_COUNTED + 1].count()
    return {"count": min(count, MAX_COUNTED), "is_capped": count > MAX_COUNTED}
