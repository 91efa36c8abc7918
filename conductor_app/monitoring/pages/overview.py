"""The overview: key figures and everything that needs attention. Each tile may fail without affecting the others."""

from functools import cache
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...core.informative_lines import informative_line
from ...insight.durations import DAY, format_duration
from ...insight.failures.failure_impact import runs_by_definition
from ...insight.failures.failure_inbox import ListedFailureGroup, most_harmful_groups
from ...insight.monitoring.health import EngineHealth, is_sweep_late
from ...insight.monitoring.open_work import OpenWork, count_open_work
from ...insight.queues.queue_states import QueueState, count_blocked_runs, list_queues
from ...insight.runs.cause import failure_reasons
from ...insight.tasks.waiting_for_people import count_overdue
from ...models import BulkOperation, QueueHold, Run
from ..badges import format_lower_bound, relative_time, render_badge
from ..charts import sparkline
from ..failures.failure_groups import failure_group_address, render_failure_message
from ..pages import Page
from ..paginator import MAX_COUNTED
from ..queues.queue_list import queue_address
from ..runs.run_page import run_address
from ..status_bar import health_for
from ..tiles import build_tile
from .first_steps import first_steps

MAX_FAILURES = 8
MAX_WAITING_TASKS = 100


class AttentionPage(Page):
    """The list of what needs attention, which the overview refreshes."""

    name, permission, template = "overview_attention", "conductor.view_run", "ops/overview/attention_page.html"
    title = gettext_lazy("Needs attention")
    live_template = "ops/overview/attention.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return overview_context(health_for(request))


def overview_context(health: EngineHealth) -> dict[str, Any]:
    """Return the context of the overview: key figures, first steps, and what needs attention."""
    now = clock.now()
    queue_tile = build_tile(_("Queues"), "", lambda: {"states": list_queues()})
    states: list[QueueState] = queue_tile.context.get("states", [])
    open_work = cache(lambda: count_open_work(MAX_COUNTED + 1))
    numbers = build_tile(
        _("Key figures"), "ops/overview/key_figures.html", lambda: _numbers_context(states, open_work())
    )
    concerns = [
        build_tile(
            _("Background jobs"), "ops/overview/failing_sweeps.html", lambda: {"rows": _sweep_rows(health, now)}
        ),
        build_tile(_("Failures"), "ops/overview/failures.html", lambda: _failure_section(now, numbers.context)),
        build_tile(
            _("Undelivered messages"),
            "ops/overview/undelivered_messages.html",
            lambda: {"count": health.undelivered},
        ),
        build_tile(
            _("Queues"), "ops/overview/queues_without_workers.html", lambda: {"rows": _unpolled_queues(states, now)}
        ),
        build_tile(_("Human tasks"), "ops/overview/human_tasks.html", lambda: _waiting_tasks_context(open_work(), now)),
        build_tile(_("Pending approvals"), "ops/overview/approvals.html", lambda: _pending_operations(open_work())),
    ]
    if queue_tile.is_broken:
        concerns[3] = queue_tile
    return {
        "numbers": numbers,
        "concerns": concerns,
        "is_all_clear": not any(each.is_broken or any(each.context.values()) for each in concerns),
        "steps": build_tile(
            _("Get started"),
            "ops/overview/first_steps.html",
            lambda: first_steps(states, _counts_runs(numbers.context)),
        ),
    }


def _numbers_context(states: list[QueueState], open_work: OpenWork) -> dict[str, Any]:
    return {
        "counts": _status_counts(open_work),
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
        {"sweep": sweep, "is_late": is_sweep_late(sweep, now), "began": relative_time(sweep.began_at, now)}
        for sweep in health.troubled_sweeps
    ]


def _unpolled_queues(states: list[QueueState], now: int) -> list[dict[str, Any]]:
    """Return queues with pending tasks that no worker polls or that are paused."""
    waiting = [queue for queue in states if queue.pending]
    holds = QueueHold.objects.filter(until_at__gt=now).in_bulk() if waiting else {}
    stuck = [queue for queue in waiting if queue.name in holds or queue.is_neglected(now)]
    runs = count_blocked_runs([queue.name for queue in stuck]) if stuck else {}
    rows = [
        {
            "queue": queue,
            "address": queue_address(queue.name),
            "oldest": format_duration(now - (queue.oldest_at or now)),
            "hold": holds.get(queue.name),
            "runs": runs.get(queue.name, 0),
        }
        for queue in stuck
    ]
    return sorted(rows, key=lambda row: -row["runs"])


def _waiting_tasks_context(open_work: OpenWork, now: int) -> dict[str, Any]:
    count = open_work.human_tasks
    return {
        "count": min(count, MAX_WAITING_TASKS),
        "is_cut": count > MAX_WAITING_TASKS,
        "overdue": count_overdue(now) if count else 0,
    }


def _pending_operations(open_work: OpenWork) -> dict[str, Any]:
    return {"rows": list(BulkOperation.objects.waiting_for_approval()[:MAX_FAILURES]) if open_work.approvals else []}


def _failure_section(now: int, numbers: dict[str, Any]) -> dict[str, Any]:
    """Return the open failure groups by impact, or single failed runs until the first group exists.

    Groups that have ended no run are folded into one row.
    """
    listed = most_harmful_groups(now, MAX_FAILURES)
    counts = runs_by_definition({each.group.definition for each in listed}, now)
    group_rows = [_failure_row(each, counts, now) for each in listed if not each.impact.was_retried]
    recovered = [_failure_row(each, counts, now) for each in listed if each.impact.was_retried]
    is_none = any(count["status"] == "FAILED" and not count["count"] for count in numbers.get("counts", ()))
    return {
        "groups": group_rows,
        "recovered": recovered,
        "recovered_runs": sum(row["affected"] for row in recovered),
        "runs": [] if listed or is_none else _failed_run_rows(now),
    }


def _failure_row(listed: ListedFailureGroup, counts: dict[str, int], now: int) -> dict[str, Any]:
    group, affected, runs = listed.group, len(listed.impact.affected), counts.get(listed.group.definition, 0)
    return {
        "group": group,
        "address": failure_group_address(group.pk),
        "message": render_failure_message(group),
        "spark": sparkline(listed.hours, _("Failures per hour, last 24 hours"), "bad"),
        "lost": len(listed.impact.lost),
        "newest": run_address(listed.impact.newest_lost_run) if listed.impact.newest_lost_run else "",
        "affected": affected,
        "percent": min(round(100 * affected / runs), 100) if runs else None,
        "is_new": group.first_at >= now - DAY,
        "at": relative_time(group.last_at, now),
    }


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
