"""Pages of workers: which are online, and what each is working on over time."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.authentication import server_address
from ...access.visibility import sees_all_runs
from ...core.errors import Invalid, NotFound, RequestRefused
from ...core.failure_grouping import build_of
from ...utils import clock
from ...utils.formatting import format_duration
from ...web.badges import format_count, render_pill
from ...web.links import queue_address, worker_address
from ...web.pages import ObjectPage, Page, require_permission, show_refusal
from ..commands import queues as queue_commands
from ..models import MinuteCount
from ..queries.workers import WorkerSummary, clock_skews, find_worker, workforce
from .queues import throughput_chart

STATE_PILLS = {
    "alive": ("succeeded", gettext_lazy("Online")),
    "quiet": ("waiting", gettext_lazy("Not polling")),
    "gone": ("stopped", gettext_lazy("Offline")),
}


def render_worker_state(worker: WorkerSummary, now: int) -> SafeString:
    """Return the state of a worker as icon, label and color."""
    if worker.hold is not None:
        return render_pill("paused", _("Draining"), "paused")
    tone, label = STATE_PILLS[worker.state(now)]
    return render_pill(tone, str(label))


class WorkerPage(ObjectPage):
    """Page of one worker."""

    name, template, permission = "worker", "ops/tasks/worker.html", "conductor.view_poller"
    live_template = "ops/tasks/workers/detail.html"
    shows_granted_rows = True
    route = "worker/"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now, name = clock.now(), request.GET.get("name", "")
        if not name or "\0" in name or len(name) > 255:
            raise NotFound(_("No such worker."))
        worker = find_worker(name, now)
        if worker is None and not sees_all_runs():
            raise NotFound(_("No such worker."))
        return {
            "title": name,
            "worker": worker,
            "build": build_of(name),
            "state": render_worker_state(worker, now) if worker else "",
            "queues": [(queue, queue_address(queue)) for queue in worker.queues] if worker else [],
            "actions": reverse("admin:workers", query={"q": name}),
            "may_act": request.user.has_perm(PERMISSION),
            **(throughput_chart(request, MinuteCount.WORKER, name, now) if not worker or worker.is_counted else {}),
        }


PERMISSION = "conductor.change_run"
ACTION_MESSAGES = {
    queue_commands.drain_worker: gettext_lazy("Draining. The worker finishes its tasks and receives no new ones."),
    queue_commands.undrain_worker: gettext_lazy("Resumed. The worker receives tasks again."),
    queue_commands.remove_worker: gettext_lazy("Removed from the list."),
}
MAX_QUEUES = 6
COUNTS = ("in_hand", "done", "failed")


class WorkersPage(Page):
    """List of all workers."""

    name, title, template, permission = (
        "workers",
        gettext_lazy("Workers"),
        "ops/live_list.html",
        "conductor.view_poller",
    )
    live_template = "ops/tasks/workers/rows.html"
    shows_granted_rows = True

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
            "server": f"{server_address(request)}/api",
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        """Handle a button of the page.

        Raises:
            PermissionDenied: when the user may not change workers.
        """
        require_permission(request, PERMISSION)
        worker, by = request.POST.get("worker", "").replace("\0", ""), request.user.get_username()
        reason = request.POST.get("reason", "").strip()
        acts = {
            "drain": queue_commands.drain_worker,
            "undrain": queue_commands.undrain_worker,
            "remove": queue_commands.remove_worker,
        }
        try:
            do = request.POST.get("do", "")
            if do == "release":
                released = queue_commands.release_worker_tasks(worker, by, reason)
                messages.success(request, _("Tasks reassigned: %(count)s.") % {"count": released})
            elif do in acts:
                acts[do](worker, by, reason)
                messages.success(request, ACTION_MESSAGES[acts[do]])
            else:
                raise Invalid(_("Missing or unknown action."))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(_workers_address(_search_text(request)))


def _search_text(request: HttpRequest) -> str:
    """Return the search text for worker names and task types."""
    return request.GET.get("q", "").strip()[:100]


def _workers_address(text: str) -> str:
    return reverse("admin:workers", query={"q": text} if text else None)


def _worker_row(worker: WorkerSummary, now: int) -> dict[str, Any]:
    return {
        "worker": worker,
        "state": render_worker_state(worker, now),
        "address": worker_address(worker.name) if worker.name else "",
        "is_gone": worker.state(now) == "gone",
        "queues": [(name, queue_address(name)) for name in worker.queues[:MAX_QUEUES]],
        "more": max(len(worker.queues) - MAX_QUEUES, 0),
        **{name: format_count(getattr(worker, name)) if worker.is_counted else "–" for name in COUNTS},
    }


def _skew_pill(off: int) -> SafeString | str:
    """Return a warning about a clock that differs from the server's."""
    if not off:
        return ""
    sentence = _("clock ahead by %(span)s") if off > 0 else _("clock behind by %(span)s")
    return render_pill("failed", sentence % {"span": format_duration(abs(off))}, "warning")
