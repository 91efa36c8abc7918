"""Workers: who is alive, and what each is doing."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...core.errors import Invalid, RequestRefused
from ...engine import queues
from ...insight.clock_skew import clock_skews
from ...insight.durations import format_duration
from ...insight.workers import WorkerSummary, workforce
from ..badges import format_count, render_pill
from ..error_messages import require_permission, show_refusal
from ..pages import Page
from .queues import queue_address

PERMISSION = "conductor.change_run"
STATE_PILLS = {
    "alive": ("succeeded", gettext_lazy("alive")),
    "quiet": ("waiting", gettext_lazy("quiet")),
    "gone": ("stopped", gettext_lazy("gone")),
}
ACTION_MESSAGES = {
    queues.drain_worker: gettext_lazy("It is handed nothing more, and finishes what it has."),
    queues.undrain_worker: gettext_lazy("It is handed work again."),
    queues.forget_worker: gettext_lazy("It is listed no more."),
}
MAX_QUEUES = 6


class WorkersPage(Page):
    """Who is alive and doing what?"""

    name, title, template, permission = "workers", gettext_lazy("Workers"), "ops/workers.html", "conductor.view_poller"
    live_template = "ops/workers/rows.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now, text = clock.now(), _search_text(request)
        found, off = workforce(now, text), clock_skews(now)
        return {
            "workers": [
                _worker_row(worker, now) | {"skew": _skew_pill(off.get(worker.name, 0))} for worker in found.workers
            ],
            "builds": found.builds,
            "more": found.more,
            "many_more": format_count(found.more) + "+" * found.is_capped,
            "text": text,
            "address": _workers_address(text),
            "may_act": request.user.has_perm(PERMISSION),
            "server": f"{request.scheme}://{request.get_host()}/api",
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        require_permission(request, PERMISSION)
        worker, by = request.POST.get("worker", "").replace("\0", ""), request.user.get_username()
        reason = request.POST.get("reason", "").strip()
        acts = {"drain": queues.drain_worker, "undrain": queues.undrain_worker, "forget": queues.forget_worker}
        try:
            do = request.POST.get("do", "")
            if do == "release":
                released = queues.release_worker_tasks(worker, by, reason)
                messages.success(request, _("Handed to others: %(count)s.") % {"count": released})
            elif do in acts:
                acts[do](worker, by, reason)
                messages.success(request, ACTION_MESSAGES[acts[do]])
            else:
                raise Invalid(_("It is not said what is to be done."))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(_workers_address(_search_text(request)))


def _search_text(request: HttpRequest) -> str:
    """What is looked for among names and task types."""
    return request.GET.get("q", "").strip()[:100]


def _workers_address(text: str) -> str:
    return reverse("admin:workers", query={"q": text} if text else None)


def _worker_row(worker: WorkerSummary, now: int) -> dict[str, Any]:
    return {
        "worker": worker,
        "state": _state_pill(worker, now),
        "is_gone": worker.state(now) == "gone",
        "queues": [(name, queue_address(name)) for name in worker.queues[:MAX_QUEUES]],
        "more": max(len(worker.queues) - MAX_QUEUES, 0),
    }


def _skew_pill(off: int) -> SafeString | str:
    """What to say of a clock that goes wrong."""
    if not off:
        return ""
    sentence = _("its clock is ahead by %(span)s") if off > 0 else _("its clock is behind by %(span)s")
    return render_pill("failed", sentence % {"span": format_duration(abs(off))}, "warning")


def _state_pill(worker: WorkerSummary, now: int) -> SafeString:
    if worker.hold is not None:
        return render_pill("paused", _("drained"), "paused")
    state = worker.state(now)
    return render_pill(STATE_PILLS[state][0], str(STATE_PILLS[state][1]))
