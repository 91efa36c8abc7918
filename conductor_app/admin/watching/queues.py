"""Queues: what waits in them, since when, who asks for it; and the page of one queue."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString

from ... import clock
from ...core.errors import Invalid, NotFound, Refused
from ...core.snapshot import NEVER
from ...engine import queues as engine
from ...insight.flow import FIELDS, Hour, last_hour
from ...insight.position import per_time, rates
from ...insight.queue import QueueStory, is_alive, queue_story
from ...insight.queues import QueueState, queues
from ...insight.spans import MINUTE, span
from ...models import QueueHold, Tally
from ..charts import spark, stacked
from ..marks import ago, exact, pill
from ..object_pages import ObjectPage
from ..pages import Page
from ..refusals import require, tell

PERMISSION = "conductor.change_run"


class QueuesPage(Page):
    """Why is work not moving?"""

    name, title, template, permission = "queues", "Queues", "ops/queues.html", "conductor.view_attempt"
    live_template = "ops/queues/rows.html"

    def context(self, request: HttpRequest) -> dict[str, Any]:
        now = clock.now()
        found = queues()
        names = [queue.name for queue in found]
        hours, speeds = last_hour(Tally.QUEUE, names, now), rates(names, now)
        holds = QueueHold.objects.filter(until_at__gt=now).in_bulk()
        return {
            "queues": [_shown(each, hours.get(each.name, Hour()), speeds, holds.get(each.name), now) for each in found]
        }


def _shown(queue: QueueState, hour: Hour, speeds: Mapping[str, float], hold: QueueHold | None, now: int):
    speed = speeds.get(queue.name)
    return {
        "queue": queue,
        "address": queue_address(queue.name),
        "oldest": span(now - queue.oldest_at) if queue.oldest_at else "–",
        "polled": ago(queue.polled_at, now),
        "state": _state(queue, hold, now),
        "in": hour.rate("scheduled"),
        "rate": per_time(speed) if speed else "–",
        "eta": span(round(queue.pending / speed * 1000)) if speed and queue.pending and hold is None else "–",
        "spark": spark(hour.bars("started"), f"handed out by {queue.name}, five minutes a bar"),
    }


def _state(queue: QueueState, hold: QueueHold | None, now: int) -> SafeString | str:
    if hold is not None:
        return pill("paused", "paused", "paused")
    if queue.is_neglected(now):
        return pill("failed", "nobody polls", "warning")
    return pill("succeeded", "polled") if queue.is_polled(now) else ""


def queue_address(name: str) -> str:
    """Where the page of a queue is."""
    return reverse("admin:queue", query={"name": name})


class QueuePage(ObjectPage):
    """One queue."""

    name, template, permission = "queue", "ops/queue.html", "conductor.view_attempt"
    live_template = "ops/queues/story.html"
    route = "queue/"

    def shown(self, request: HttpRequest, **_: Any) -> dict[str, Any]:
        now, name = clock.now(), _name(request)
        story = queue_story(name, now)
        hour = story.hour
        return {
            "title": name,
            "queue": name,
            "story": story,
            "state": _sentence(story, now),
            "rate": per_time(story.rate) if story.rate else "",
            "drained": span(round(story.pending / story.rate * 1000)) if story.rate and story.pending else "",
            "chart": stacked([(kind, hour.minutes[kind]) for kind in ("scheduled", "started", "failed")], CHART),
            "totals": [(KINDS[kind], hour.total(kind)) for kind in FIELDS],
            "has_moved": any(hour.total(kind) for kind in FIELDS),
            "pollers": [(poller, is_alive(poller, now)) for poller in story.pollers],
            "may_act": request.user.has_perm(PERMISSION),
            "permission": PERMISSION,
            "address": queue_address(name),
        }

    def sent(self, request: HttpRequest, **_: Any) -> HttpResponse:
        require(request, PERMISSION)
        name = _name(request)
        try:
            do = ACTS.get(request.POST.get("do", ""))
            if do is None:
                raise Invalid("It is not said what is to be done.")
            messages.success(request, do(name, request.POST, request.user.get_username()))
        except Refused as refused:
            tell(request, refused)
        return HttpResponseRedirect(queue_address(name))


KINDS = {"scheduled": "scheduled", "started": "handed out", "done": "done", "failed": "failed"}
CHART = "Scheduled, handed out and failed in each of the last 60 minutes"


def _sentence(story: QueueStory, now: int) -> tuple[str, str]:
    """The colour and the words of how the queue is."""
    hold = story.hold
    if hold is not None:
        until = f" until {exact(hold.until_at)}" if hold.until_at < NEVER else ""
        return "paused", f"Paused by {hold.by}{until}{f': {hold.reason}' if hold.reason else ''}"
    alive = sum(is_alive(poller, now) for poller in story.pollers)
    if story.pending and not alive:
        return "failed", f"Nobody polls: {story.pending:,} wait"
    if any(limit.is_reached for limit in story.limits) and story.pending:
        return "waiting", "Braked: a limit is reached"
    if not story.pending:
        return "succeeded", "Nothing waits"
    return (
        "active",
        f"Open: {story.pending:,} wait, {alive} worker{'s' if alive != 1 else ''} poll{'s' if alive == 1 else ''}",
    )


def _pause(queue: str, said: Mapping[str, str], by: str) -> str:
    minutes = said.get("minutes", "").strip()
    if minutes and (not minutes.isdecimal() or not 0 < int(minutes[:9]) < 1_000_000):
        raise Invalid(f"{minutes[:40]!r} is no number of minutes.")
    until_at = clock.now() + int(minutes) * MINUTE if minutes else None
    engine.pause(queue, by, said.get("reason", "").strip(), until_at)
    return "The queue hands nothing out. What workers hold goes on."


def _resume(queue: str, said: Mapping[str, str], by: str) -> str:
    engine.resume(queue, by, said.get("reason", "").strip())
    return "The queue hands out again."


def _to_front(queue: str, said: Mapping[str, str], by: str) -> str:
    engine.move_to_front(said.get("attempt", ""), by, said.get("reason", "").strip())
    return "It is handed out next."


def _prioritise(queue: str, said: Mapping[str, str], by: str) -> str:
    priority = said.get("priority", "").strip()
    if not priority.isdecimal() or len(priority) > 3:
        raise Invalid(f"{priority[:40]!r} is no priority.")
    engine.prioritise(said.get("attempt", ""), int(priority), by, said.get("reason", "").strip())
    return f"Its priority is {priority}."


def _to_domain(queue: str, said: Mapping[str, str], by: str) -> str:
    domain = said.get("domain", "").strip()
    engine.move_to_domain(said.get("attempt", ""), domain, by, said.get("reason", "").strip())
    return f"It waits for workers of the domain {domain}." if domain else "It waits in the queue without a domain."


ACTS: dict[str, Callable[[str, Mapping[str, str], str], str]] = {
    "pause": _pause,
    "resume": _resume,
    "front": _to_front,
    "priority": _prioritise,
    "domain": _to_domain,
}


def _name(request: HttpRequest) -> str:
    name = request.GET.get("name", "")
    if not name or "\0" in name or len(name) > 640:
        raise NotFound("There is no such queue.")
    return name
