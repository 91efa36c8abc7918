"""The list of queues: pending attempts, age, rates, and pollers."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...insight.durations import format_duration
from ...insight.queues.queue_position import format_rate, queue_rates
from ...insight.queues.queue_states import QueueState, limits_used, list_queues, rate_limits
from ...insight.queues.throughput import HourOfMinutes, last_hour
from ...models import MinuteCount, QueueHold
from ..badges import relative_time, render_pill
from ..charts import sparkline
from ..pages import Page

PERMISSION = "conductor.change_run"


class QueuesPage(Page):
    """List of all queues."""

    name, title, template, permission = "queues", gettext_lazy("Queues"), "ops/queues.html", "conductor.view_attempt"
    live_template = "ops/queues/rows.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now = clock.now()
        found = list_queues()
        names = [queue.name for queue in found]
        hours, fastest = last_hour(MinuteCount.QUEUE, names, now), rate_limits(found)
        speeds = {name: min(rate, fastest.get(name, rate)) for name, rate in queue_rates(names, now).items()}
        holds, limits = QueueHold.objects.filter(until_at__gt=now).in_bulk(), limits_used(found)
        return {
            "queues": [
                _queue_row(each, hours.get(each.name, HourOfMinutes()), speeds.get(each.name), now)
                | {"state": _state_pill(each, holds.get(each.name), limits.get(each.name), now)}
                | {
                    "limit": limits.get(each.name),
                    "eta": _format_eta(each, speeds.get(each.name), holds.get(each.name), now),
                }
                for each in found
            ]
        }


def _queue_row(queue: QueueState, hour: HourOfMinutes, speed: float | None, now: int) -> dict[str, Any]:
    coming = hour.rate("scheduled")
    return {
        "queue": queue,
        "address": queue_address(queue.name),
        "oldest": format_duration(now - queue.oldest_at) if queue.oldest_at else "–",
        "polled": relative_time(queue.polled_at, now),
        "in": format_rate(coming) if coming else "–",
        "rate": format_rate(speed) if speed else "–",
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


def queue_address(name: str) -> str:
    """Return the address of the page of a queue."""
    return reverse("admin:queue", query={"name": name})
