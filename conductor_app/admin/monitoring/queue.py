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

    def get_context(self, request: HttpRequest, **which: Any) -> dict[str, Any]:
        now, name = clock.now(), _name(request)
        story = queue_detail(name, now)
        hour = story.hour
        return {
            "title": name,
            "queue": name,
            "story": story,
            "state": _sentence(story, now),
            "speed": _speed(story, now),
            "chart": stacked_bars([(kind, hour.minutes[kind]) for kind in FIELDS], str(CHART)),
            "highest": max(count for kind in FIELDS for count in hour.minutes[kind]),
            "marks": [
                *(_("%(span)s ago") % {"span": format_duration(minutes * MINUTE)} for minutes in QUARTERS),
                _("now"),
            ],
            "totals": [((kind, KINDS[kind]), hour.total(kind)) for kind in FIELDS],
            "has_moved": any(hour.total(kind) for kind in FIELDS),
            "pollers": [(poller, is_polling(poller, now)) for poller in story.pollers],
            "may_act": request.user.has_perm(PERMISSION),
            "permission": PERMISSION,
            "address": queue_address(name),
        }

    def handle_post(self, request: HttpRequest, **which: Any) -> HttpResponse:
        require_permission(request, PERMISSION)
        name = _name(request)
        try:
            do = ACTS.get(request.POST.get("do", ""))
            if do is None:
                raise Invalid(_("It is not said what is to be done."))
            messages.success(request, do(name, request.POST, request.user.get_username()))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(queue_address(name))


KINDS = {
    "scheduled": gettext_lazy("scheduled"),
    "started": gettext_lazy("handed out"),
    "done": gettext_lazy("done"),
    "failed": gettext_lazy("failed"),
}
QUARTERS = (60, 45, 30, 15)
CHART = gettext_lazy("Scheduled, handed out, done and failed in each of the last 60 minutes")


def _sentence(story: QueueDetail, now: int) -> tuple[str, str]:
    """The colour and the words of how the queue is."""
    hold = story.hold
    if hold is not None:
        return "paused", _pause_context(hold)
    alive, many_wait = sum(is_polling(poller, now) for poller in story.pollers), {"count": format_count(story.pending)}
    if story.pending and not alive:
        return "failed", _("Nobody polls: %(count)s wait.") % many_wait
    if any(limit.is_reached for limit in story.limits) and story.pending:
        return "waiting", _("Braked: a limit is reached.")
    if not story.pending:
        return "succeeded", _("Nothing waits.")
    said = ngettext(
        "Open: %(count)s wait, %(alive)s worker polls.", "Open: %(count)s wait, %(alive)s workers poll.", alive
    )
    return "active", said % {**many_wait, "alive": alive}


def _pause_context(hold: QueueHold) -> str:
    named = {"by": hold.by, "until": exact_time(hold.until_at) if hold.until_at < NEVER else "", "reason": hold.reason}
    if hold.until_at < NEVER:
        said = (
            _("Paused by %(by)s until %(until)s: %(reason)s") if hold.reason else _("Paused by %(by)s until %(until)s.")
        )
    else:
        said = _("Paused by %(by)s: %(reason)s") if hold.reason else _("Paused by %(by)s.")
    return said % named


def _speed(story: QueueDetail, now: int) -> str:
    """How fast it moves, and when it would be empty."""
    if not story.rate:
        return ""
    named = {"rate": format_rate(story.rate), "span": format_duration(round(story.pending / story.rate * 1000))}
    if story.pending and story.hold is None and any(is_polling(poller, now) for poller in story.pollers):
        return _("It hands out %(rate)s: empty in about %(span)s.") % named
    return _("It hands out %(rate)s.") % named


def _pause(queue: str, said: Mapping[str, str], by: str) -> str:
    until_at = _minutes_from_now(said) if said.get("minutes", "").strip() else None
    engine.pause_queue(queue, by, said.get("reason", "").strip(), until_at)
    return _("The queue hands nothing out. What workers hold goes on.")


def _minutes_from_now(said: Mapping[str, str]) -> int:
    minutes = said.get("minutes", "").strip()
    if not minutes.isdecimal() or len(minutes) > 6 or not int(minutes):
        raise Invalid(_("%(text)r is no number of minutes.") % {"text": minutes[:40]})
    return clock.now() + int(minutes) * MINUTE


def _resume(queue: str, said: Mapping[str, str], by: str) -> str:
    engine.resume_queue(queue, by, said.get("reason", "").strip())
    return _("The queue hands out again.")


def _to_front(queue: str, said: Mapping[str, str], by: str) -> str:
    engine.move_to_front(said.get("attempt", ""), by, said.get("reason", "").strip())
    return _("It is handed out next.")


def _prioritize(queue: str, said: Mapping[str, str], by: str) -> str:
    priority = said.get("priority", "").strip()
    if not priority.isdecimal() or len(priority) > 3:
        raise Invalid(_("%(text)r is no priority.") % {"text": priority[:40]})
    engine.prioritize(said.get("attempt", ""), int(priority), by, said.get("reason", "").strip())
    return _("Its priority is %(priority)s.") % {"priority": priority}


def _to_domain(queue: str, said: Mapping[str, str], by: str) -> str:
    domain = said.get("domain", "").strip()
    engine.move_to_domain(said.get("attempt", ""), domain, by, said.get("reason", "").strip())
    if domain:
        return _("It waits for workers of the domain %(domain)s.") % {"domain": domain}
    return _("It waits in the queue without a domain.")


def _hold(queue: str, said: Mapping[str, str], by: str) -> str:
    until_at = _minutes_from_now(said)
    engine.delay_until(said.get("attempt", ""), until_at, by, said.get("reason", "").strip())
    return _("It is not handed out before %(moment)s.") % {"moment": exact_time(until_at)}


def _cancel(queue: str, said: Mapping[str, str], by: str) -> str:
    engine.cancel_attempt(said.get("attempt", ""), by, said.get("reason", "").strip())
    return _("The task is canceled: it is not tried again.")


ACTS: dict[str, Callable[[str, Mapping[str, str], str], str]] = {
    "pause": _pause,
    "resume": _resume,
    "front": _to_front,
    "priority": _prioritize,
    "domain": _to_domain,
    "hold": _hold,
    "cancel": _cancel,
}


def _name(request: HttpRequest) -> str:
    name = request.GET.get("name", "")
    if not name or "\0" in name or len(name) > 640:
        raise NotFound(_("There is no such queue."))
    return name
