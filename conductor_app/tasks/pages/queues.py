"""Pages of queues: their list, one queue with its attempts, limits and actions, and why one task waits."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import takewhile
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.visibility import may, visible
from ...core.definition import structure_of
from ...core.errors import Invalid, NotFound, RequestRefused
from ...core.snapshot import NEVER
from ...definitions.models import TaskDefinition
from ...runs.models import Attempt, AttemptQuerySet
from ...runs.queries.recent import run_keys
from ...utils import clock
from ...utils.formatting import HOUR_RANGE, MINUTE, TimeRange, format_duration
from ...web.badges import exact_time, format_count, mark_names, relative_time, render_badge, render_pill
from ...web.charts import ChartSeries, TrendChart, build_markers, chosen_range, range_links, sparkline
from ...web.links import queue_address, run_address
from ...web.pages import ObjectPage, Page, require_permission, show_refusal
from ..commands import queues as queue_commands
from ..models import MinuteCount, QueueHold
from ..queries.queue_states import QueueState, limits_used, list_queues, rate_limits
from ..queries.queues import (
    QueueDetail,
    attempts_ahead,
    format_rate,
    is_polling,
    may_see_queue,
    queue_detail,
    queue_position,
    queue_rates,
    visible_queues,
)
from ..queries.shares import claim_order
from ..queries.waiting import GateVerdict, closed_gates, load_wait_facts, verdicts_on
from ..queries.workers import HourOfMinutes, counts_in_range, first_uses_of_builds, last_hour
from .actions import task_actions
from .task_panel import attempts_for_panel, gate_lists

MAX_AHEAD = 10


class WhyWaitingPage(ObjectPage):
    """Page about one pending task."""

    name, template, permission = "why_waiting", "ops/tasks/why_waiting.html", "conductor.view_attempt"
    shows_granted_rows = True
    live_template = "ops/tasks/why_waiting_gates.html"
    route = "why-waiting/<str:attempt_id>/"

    def get_context(self, request: HttpRequest, attempt_id: str) -> dict[str, Any]:
        """Return the gates, the limits and the queue position of the attempt."""
        now = clock.now()
        attempt = visible(attempts_for_panel().filter(pk=attempt_id)).first()
        if attempt is None:
            raise NotFound(f"No such task: {attempt_id[:64]}.")
        facts = load_wait_facts([attempt], now).get(attempt.pk)
        verdicts = verdicts_on(attempt, now, facts)
        closed = closed_gates(verdicts)
        is_polled = all(verdict.gate != "polled" for verdict in closed)
        position = queue_position(attempt, now, facts.gates if facts else None, is_polled=is_polled)
        ahead = _load_attempts_ahead(attempt, now) if position and position.ahead else []
        definition = visible(TaskDefinition.objects.filter(name=attempt.name)).only("pk", "name").first()
        return {
            "title": _("Why is %(task)s waiting?") % {"task": attempt.task.label},
            "attempt": attempt,
            "badge": render_badge(attempt.status),
            "gates": gate_lists(verdicts),
            "is_waiting": bool(verdicts),
            "first": mark_names(closed[0].sentence) if closed else "",
            "position": position,
            "ahead": ahead,
            "more_ahead": position.ahead - len(ahead) if position else 0,
            "state": _state_sentence(attempt),
            "of_run": _run_sentence(attempt),
            "in_queue": _queue_sentence(attempt),
            "task_acts": task_actions(attempt, now, partial(may, request.user, row=attempt)),
            "definition": definition,
            "run_keys": run_keys(_run_ids(attempt, verdicts, ahead)),
            "limit_address": _limit_address(definition, request) if definition else "",
            "queue": queue_address(attempt.queue) if attempt.queue and may_see_queue(attempt.queue) else "",
        }


def _run_ids(attempt: Attempt, verdicts: Iterable[GateVerdict], ahead: Iterable[Attempt]) -> Iterator[str]:
    yield from (each.run_id or "" for each in (attempt, *ahead))
    yield from (holder.run_id or "" for verdict in verdicts for holder in verdict.holders)


def _load_attempts_ahead(attempt: Attempt, now: int) -> list[Attempt]:
    """Return the first attempts that are dispatched before this one and that the actor may see."""
    payloads = [f"run__{name}" for name in ("input", "output", "variables")]

    def load(attempts: AttemptQuerySet) -> QuerySet[Attempt]:
        rows = visible(attempts.defer_payloads()).select_related("task", "run")
        return rows.defer("input", "output", "task__step_state", *payloads)

    if not attempt.fairness_key:
        return list(load(attempts_ahead(attempt, now))[:MAX_AHEAD])
    order = list(takewhile(lambda id: id != attempt.pk, claim_order(attempt.queue, now, MAX_AHEAD + 1)))[:MAX_AHEAD]
    return sorted(load(Attempt.objects.filter(pk__in=order)), key=lambda each: order.index(each.pk))


def _limit_address(definition: TaskDefinition, request: HttpRequest) -> str:
    """Return the address of the limits: the form for users who may change them, otherwise the page."""
    if may(request.user, "conductor.change_taskdefinition", definition):
        return reverse("admin:taskdefinition_form", args=[definition.pk]) + "#id_concurrentExecLimit"
    return reverse("admin:conductor_taskdefinition_change", args=[definition.pk])


def _run_sentence(attempt: Attempt) -> SafeString:
    run, query = attempt.own_run, urlencode({"task": str(attempt.task)})
    link = format_html('<a href="{}?{}">{} v{}</a>', run_address(run.pk), query, run.name, run.version)
    return format_html(_("Workflow {run}"), run=link)


def _queue_sentence(attempt: Attempt) -> SafeString:
    link = format_html('<a href="{}">{}</a>', queue_address(attempt.queue), attempt.queue)
    return format_html(_("Queue {queue}"), queue=link if may_see_queue(attempt.queue) else attempt.queue)


def _state_sentence(attempt: Attempt) -> str:
    facts = {"status": attempt.status.replace("_", " ").lower(), "worker": attempt.worker}
    return (_("Status: %(status)s, worker %(worker)s.") if attempt.worker else _("Status: %(status)s.")) % facts


COUNT_LABELS = {
    "scheduled": gettext_lazy("Scheduled"),
    "started": gettext_lazy("Dispatched"),
    "done": gettext_lazy("Completed"),
    "failed": gettext_lazy("Failed"),
}


def throughput_chart(
    request: HttpRequest, kind: str, name: str, now: int, builds: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Return the chart of the attempts that ended, and the totals of the range.

    `builds`: when each build was used first. It becomes a marker.
    """
    chosen = chosen_range(request, HOUR_RANGE)
    time_range = TimeRange.aligned(chosen, now)
    counts, busy_ms = counts_in_range(kind, name, time_range)
    ended = sum(counts["done"]) + sum(counts["failed"])
    chart = TrendChart(
        _("Attempts"),
        time_range,
        [ChartSeries(str(COUNT_LABELS[field]), field, counts[field]) for field in ("done", "failed")],
        markers=build_markers(builds or {}),
        ranges=range_links(request, chosen),
    )
    return {
        "chart": chart,
        "totals": [(COUNT_LABELS[field], sum(counts[field])) for field in ("scheduled", "started")],
        "mean_ms": busy_ms // ended if ended else None,
    }


PERMISSION = "conductor.change_run"


class QueuesPage(Page):
    """List of all queues. Those of built-in steps, which the server executes itself, are shown on demand."""

    name, title, template, permission = (
        "queues",
        gettext_lazy("Queues"),
        "ops/live_list.html",
        "conductor.view_attempt",
    )
    live_template = "ops/tasks/queues/rows.html"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now = clock.now()
        everything = visible_queues(list_queues())
        found = everything if "built_in" in request.GET else [each for each in everything if not _is_quiet(each, now)]
        names = [queue.name for queue in found]
        hours, fastest = last_hour(MinuteCount.QUEUE, names, now), rate_limits(found)
        speeds = {name: min(rate, fastest.get(name, rate)) for name, rate in queue_rates(names, now).items()}
        holds, limits = QueueHold.objects.filter(until_at__gt=now).in_bulk(), limits_used(found)
        largest = max((hour.rate(field) for hour in hours.values() for field in ("scheduled", "started")), default=0)
        return {
            "queues": [
                _queue_row(each, hours.get(each.name, HourOfMinutes()), largest, now)
                | {"state": _state_pill(each, holds.get(each.name), limits.get(each.name), now)}
                | {
                    "limit": limits.get(each.name),
                    "eta": _format_eta(each, speeds.get(each.name), holds.get(each.name), now),
                }
                for each in found
            ],
            "hidden_count": len(everything) - len(found),
            "shows_built_in": "built_in" in request.GET,
        }


def _is_quiet(queue: QueueState, now: int) -> bool:
    """Return True if a queue is that of a built-in step, and no task waits for a worker that is missing."""
    return structure_of(queue.name.rpartition(":")[2]).is_built_in and not queue.is_neglected(now)


def _queue_row(queue: QueueState, hour: HourOfMinutes, largest: float, now: int) -> dict[str, Any]:
    coming, dispatched = hour.rate("scheduled"), hour.rate("started")
    return {
        "queue": queue,
        "address": queue_address(queue.name),
        "oldest": format_duration(now - queue.oldest_at) if queue.oldest_at else "–",
        "polled": relative_time(queue.polled_at, now),
        "in": format_rate(coming, largest) if coming else "–",
        "rate": format_rate(dispatched, largest) if dispatched else "–",
        "spark": sparkline(
            hour.bars("started"), _("Dispatched by %(queue)s, five minutes per bar") % {"queue": queue.name}
        ),
    }


def _format_eta(queue: QueueState, speed: float | None, hold: QueueHold | None, now: int) -> str:
    """Return when the queue will be empty at its rate of the last minutes."""
    if not (speed and queue.pending and hold is None and queue.is_polled(now)):
        return "–"
    needs = format_duration(round(queue.counted / speed * 1000))
    return _("more than %(span)s") % {"span": needs} if queue.has_more else needs


def _state_pill(queue: QueueState, hold: QueueHold | None, limit: tuple[int, int] | None, now: int) -> SafeString:
    if hold is not None:
        return render_pill("paused", _("Paused"), "paused")
    if queue.is_neglected(now):
        return render_pill("failed", _("No workers"), "warning")
    if limit is not None and limit[0] >= limit[1] and queue.pending:
        return render_pill("waiting", _("Throttled"), "warning")
    return render_pill("succeeded", _("Active")) if queue.is_polled(now) else render_pill("stopped", _("Idle"))


class QueuePage(ObjectPage):
    """Page of one queue."""

    name, template, permission = "queue", "ops/tasks/queue.html", "conductor.view_attempt"
    live_template = "ops/tasks/queues/detail.html"
    shows_granted_rows = True
    route = "queue/"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now, name = clock.now(), _queue_name(request)
        detail = queue_detail(name, now)
        builds = first_uses_of_builds([poller.worker for poller in detail.pollers])
        return {
            "title": name,
            "queue": name,
            "detail": detail,
            "run_keys": run_keys(_ids_of_named_runs(detail)),
            "state": _queue_state(detail, now),
            "rate_sentence": _speed_sentence(detail, now),
            **throughput_chart(request, MinuteCount.QUEUE, name, now, builds),
            "pollers": [(poller, is_polling(poller, now)) for poller in detail.pollers],
            "may_act": request.user.has_perm(PERMISSION),
            "permission": PERMISSION,
            "address": queue_address(name),
        }

    def handle_post(self, request: HttpRequest) -> HttpResponse:
        """Handle a button of the page."""
        require_permission(request, PERMISSION)
        name = _queue_name(request)
        try:
            do = ACTIONS.get(request.POST.get("do", ""))
            if do is None:
                raise Invalid(_("Missing or unknown action."))
            messages.success(request, do(name, request.POST, request.user.get_username()))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(queue_address(name))


def _ids_of_named_runs(detail: QueueDetail) -> Iterator[str]:
    yield from (row.attempt.run_id or "" for row in detail.waiting)
    yield from (attempt.run_id or "" for attempt in detail.running)
    yield from (holder.run_id or "" for limit in detail.limits for holder in limit.holders)


def _queue_state(detail: QueueDetail, now: int) -> tuple[str, str]:
    """Return the display group and the text of the queue's state."""
    hold = detail.hold
    if hold is not None:
        return "paused", _pause_sentence(hold)
    alive, counts = (
        sum(is_polling(poller, now) for poller in detail.pollers),
        {"count": format_count(detail.pending)},
    )
    if detail.pending and not alive:
        last = max((poller.polled_at for poller in detail.pollers), default=None)
        facts = {**counts, "span": format_duration(now - (last or 0))}
        never = _("No worker has ever polled this queue: %(count)s queued.")
        return "failed", (_("No worker has polled for %(span)s: %(count)s queued.") if last else never) % facts
    if any(limit.is_reached for limit in detail.limits) and detail.pending:
        return "waiting", _("Throttled by a limit.")
    if not detail.pending and detail.delayed:
        delays = ", ".join(f"{format_count(count)} {words}" for words, count in detail.delays)
        return "waiting", _("No task is due: %(delays)s.") % {"delays": delays or format_count(detail.delayed)}
    if not detail.pending:
        return "succeeded", _("Empty.")
    message = ngettext(
        "Active: %(count)s queued, %(alive)s worker polling.",
        "Active: %(count)s queued, %(alive)s workers polling.",
        alive,
    )
    return "active", message % {**counts, "alive": alive}


def _pause_sentence(hold: QueueHold) -> str:
    facts = {"by": hold.by, "until": exact_time(hold.until_at) if hold.until_at < NEVER else "", "reason": hold.reason}
    if hold.until_at < NEVER:
        message = (
            _("Paused by %(by)s until %(until)s: %(reason)s") if hold.reason else _("Paused by %(by)s until %(until)s.")
        )
    else:
        message = _("Paused by %(by)s: %(reason)s") if hold.reason else _("Paused by %(by)s.")
    return message % facts


def _speed_sentence(detail: QueueDetail, now: int) -> str:
    """Return the dispatch rate of a queue that workers poll, and when the queue will be empty."""
    if not detail.rate or not any(is_polling(poller, now) for poller in detail.pollers):
        return ""
    facts = {"rate": format_rate(detail.rate)}
    if detail.drains_in_ms is not None:
        return _("Dispatches %(rate)s and is empty in about %(span)s.") % {
            **facts,
            "span": format_duration(detail.drains_in_ms),
        }
    return _("Dispatches %(rate)s.") % facts


def _pause_queue(queue: str, form_data: Mapping[str, str], by: str) -> str:
    until_at = _minutes_from_now(form_data) if form_data.get("minutes", "").strip() else None
    queue_commands.pause_queue(queue, by, form_data.get("reason", "").strip(), until_at)
    return _("Queue paused. Tasks in progress continue.")


def _minutes_from_now(form_data: Mapping[str, str]) -> int:
    minutes = form_data.get("minutes", "").strip()
    if not minutes.isdecimal() or len(minutes) > 6 or not int(minutes):
        raise Invalid(_("Enter a whole number of minutes (got %(text)r).") % {"text": minutes[:40]})
    return clock.now() + int(minutes) * MINUTE


def _resume_queue(queue: str, form_data: Mapping[str, str], by: str) -> str:
    queue_commands.resume_queue(queue, by, form_data.get("reason", "").strip())
    return _("Queue resumed.")


def _move_to_front(queue: str, form_data: Mapping[str, str], by: str) -> str:
    queue_commands.move_to_front(form_data.get("attempt", ""), by, form_data.get("reason", "").strip())
    return _("The task runs next.")


def _prioritize_attempt(queue: str, form_data: Mapping[str, str], by: str) -> str:
    priority = form_data.get("priority", "").strip()
    if not priority.isdecimal() or len(priority) > 3:
        raise Invalid(_("Not a valid priority: %(text)r.") % {"text": priority[:40]})
    queue_commands.prioritize(form_data.get("attempt", ""), int(priority), by, form_data.get("reason", "").strip())
    return _("Priority set to %(priority)s.") % {"priority": priority}


def _move_to_domain(queue: str, form_data: Mapping[str, str], by: str) -> str:
    domain = form_data.get("domain", "").strip()
    queue_commands.move_to_domain(form_data.get("attempt", ""), domain, by, form_data.get("reason", "").strip())
    if domain:
        return _("Moved to domain %(domain)s.") % {"domain": domain}
    return _("Moved to the queue without a domain.")


def _delay_attempt(queue: str, form_data: Mapping[str, str], by: str) -> str:
    until_at = _minutes_from_now(form_data)
    queue_commands.delay_until(form_data.get("attempt", ""), until_at, by, form_data.get("reason", "").strip())
    return _("Delayed until %(time)s.") % {"time": exact_time(until_at)}


def _cancel_attempt(queue: str, form_data: Mapping[str, str], by: str) -> str:
    queue_commands.cancel_attempt(form_data.get("attempt", ""), by, form_data.get("reason", "").strip())
    return _("Task canceled. It is not retried.")


ACTIONS: dict[str, Callable[[str, Mapping[str, str], str], str]] = {
    "pause": _pause_queue,
    "resume": _resume_queue,
    "front": _move_to_front,
    "priority": _prioritize_attempt,
    "domain": _move_to_domain,
    "hold": _delay_attempt,
    "cancel": _cancel_attempt,
}


def _queue_name(request: HttpRequest) -> str:
    name = request.GET.get("name", "")
    if not name or "\0" in name or len(name) > 640 or not may_see_queue(name):
        raise NotFound(_("No such queue."))
    return name
