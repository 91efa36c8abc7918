"""One queue: what waits in it and why, who takes from it, and what can be done about both."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ... import clock
from ...core.errors import Invalid, NotFound, RequestRefused
from ...core.snapshot import NEVER
from ...engine import queues as engine
from ...insight.durations import MINUTE, format_duration
from ...insight.queue_detail import QueueDetail, is_polling, queue_detail
from ...insight.queue_position import format_rate
from ...insight.throughput import FIELDS
from ...models import QueueHold
from ..badges import exact_time, format_count
from ..charts import stacked_bars
from ..error_messages import require_permission, show_refusal
from ..object_pages import ObjectPage
from .queues import PERMISSION, queue_address


class QueuePage(ObjectPage):
    """One queue."""

    name, template, permission = "queue", "ops/queue.html", "conductor.view_attempt"
    live_template = "ops/queues/story.html"
    route = "queue/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        now, name = clock.now(), _queue_name(request)
        detail = queue_detail(name, now)
        hour = detail.hour
        return {
            "title": name,
            "queue": name,
            "story": detail,
            "state": _state_sentence(detail, now),
            "speed": _speed_sentence(detail, now),
            "chart": stacked_bars([(kind, hour.minutes[kind]) for kind in FIELDS], str(CHART_LABEL)),
            "highest": max(count for kind in FIELDS for count in hour.minutes[kind]),
            "marks": [
                *(_("%(span)s ago") % {"span": format_duration(minutes * MINUTE)} for minutes in CHART_MARKS_MINUTES),
                _("now"),
            ],
            "totals": [((kind, COUNT_LABELS[kind]), hour.total(kind)) for kind in FIELDS],
            "has_moved": any(hour.total(kind) for kind in FIELDS),
            "pollers": [(poller, is_polling(poller, now)) for poller in detail.pollers],
            "may_act": request.user.has_perm(PERMISSION),
            "permission": PERMISSION,
            "address": queue_address(name),
        }

    def handle_post(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse:
        require_permission(request, PERMISSION)
        name = _queue_name(request)
        try:
            do = ACTIONS.get(request.POST.get("do", ""))
            if do is None:
                raise Invalid(_("It is not said what is to be done."))
            messages.success(request, do(name, request.POST, request.user.get_username()))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(queue_address(name))


COUNT_LABELS = {
    "scheduled": gettext_lazy("scheduled"),
    "started": gettext_lazy("handed out"),
    "done": gettext_lazy("done"),
    "failed": gettext_lazy("failed"),
}
CHART_MARKS_MINUTES = (60, 45, 30, 15)
CHART_LABEL = gettext_lazy("Scheduled, handed out, done and failed in each of the last 60 minutes")


def _state_sentence(detail: QueueDetail, now: int) -> tuple[str, str]:
    """The colour and the words of how the queue is."""
    hold = detail.hold
    if hold is not None:
        return "paused", _pause_sentence(hold)
    alive, many_wait = (
        sum(is_polling(poller, now) for poller in detail.pollers),
        {"count": format_count(detail.pending)},
    )
    if detail.pending and not alive:
        return "failed", _("Nobody polls: %(count)s wait.") % many_wait
    if any(limit.is_reached for limit in detail.limits) and detail.pending:
        return "waiting", _("Braked: a limit is reached.")
    if not detail.pending:
        return "succeeded", _("Nothing waits.")
    said = ngettext(
        "Open: %(count)s wait, %(alive)s worker polls.", "Open: %(count)s wait, %(alive)s workers poll.", alive
    )
    return "active", said % {**many_wait, "alive": alive}


def _pause_sentence(hold: QueueHold) -> str:
    named = {"by": hold.by, "until": exact_time(hold.until_at) if hold.until_at < NEVER else "", "reason": hold.reason}
    if hold.until_at < NEVER:
        said = (
            _("Paused by %(by)s until %(until)s: %(reason)s") if hold.reason else _("Paused by %(by)s until %(until)s.")
        )
    else:
        said = _("Paused by %(by)s: %(reason)s") if hold.reason else _("Paused by %(by)s.")
    return said % named


def _speed_sentence(detail: QueueDetail, now: int) -> str:
    """How fast it moves, and when it would be empty."""
    if not detail.rate:
        return ""
    named = {"rate": format_rate(detail.rate), "span": format_duration(round(detail.pending / detail.rate * 1000))}
    if detail.pending and detail.hold is None and any(is_polling(poller, now) for poller in detail.pollers):
        return _("It hands out %(rate)s: empty in about %(span)s.") % named
    return _("It hands out %(rate)s.") % named


def _pause_queue(queue: str, said: Mapping[str, str], by: str) -> str:
    until_at = _minutes_from_now(said) if said.get("minutes", "").strip() else None
    engine.pause_queue(queue, by, said.get("reason", "").strip(), until_at)
    return _("The queue hands nothing out. What workers hold goes on.")


def _minutes_from_now(said: Mapping[str, str]) -> int:
    minutes = said.get("minutes", "").strip()
    if not minutes.isdecimal() or len(minutes) > 6 or not int(minutes):
        raise Invalid(_("%(text)r is no number of minutes.") % {"text": minutes[:40]})
    return clock.now() + int(minutes) * MINUTE


def _resume_queue(queue: str, said: Mapping[str, str], by: str) -> str:
    engine.resume_queue(queue, by, said.get("reason", "").strip())
    return _("The queue hands out again.")


def _move_to_front(queue: str, said: Mapping[str, str], by: str) -> str:
    engine.move_to_front(said.get("attempt", ""), by, said.get("reason", "").strip())
    return _("It is handed out next.")


def _prioritize_attempt(queue: str, said: Mapping[str, str], by: str) -> str:
    priority = said.get("priority", "").strip()
    if not priority.isdecimal() or len(priority) > 3:
        raise Invalid(_("%(text)r is no priority.") % {"text": priority[:40]})
    engine.prioritize(said.get("attempt", ""), int(priority), by, said.get("reason", "").strip())
    return _("Its priority is %(priority)s.") % {"priority": priority}


def _move_to_domain(queue: str, said: Mapping[str, str], by: str) -> str:
    domain = said.get("domain", "").strip()
    engine.move_to_domain(said.get("attempt", ""), domain, by, said.get("reason", "").strip())
    if domain:
        return _("It waits for workers of the domain %(domain)s.") % {"domain": domain}
    return _("It waits in the queue without a domain.")


def _delay_attempt(queue: str, said: Mapping[str, str], by: str) -> str:
    until_at = _minutes_from_now(said)
    engine.delay_until(said.get("attempt", ""), until_at, by, said.get("reason", "").strip())
    return _("It is not handed out before %(moment)s.") % {"moment": exact_time(until_at)}


def _cancel_attempt(queue: str, said: Mapping[str, str], by: str) -> str:
    engine.cancel_attempt(said.get("attempt", ""), by, said.get("reason", "").strip())
    return _("The task is canceled: it is not tried again.")


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
    if not name or "\0" in name or len(name) > 640:
        raise NotFound(_("There is no such queue."))
    return name
