"""The list of workers: which are online, and what each is working on."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...access.client_address import server_address
from ...core.errors import Invalid, RequestRefused
from ...engine.queues import queue_commands
from ...insight.durations import format_duration
from ...insight.queues.clock_skew import clock_skews
from ...insight.queues.workers import WorkerSummary, workforce
from ..badges import format_count, render_pill
from ..error_messages import require_permission, show_refusal
from ..pages import Page
from .queue_list import queue_address
from .worker_page import worker_address
from .worker_states import render_worker_state

PERMISSION = "conductor.change_run"
ACTION_MESSAGES = {
    queue_commands.drain_worker: gettext_lazy("Draining. The worker finishes its tasks and receives no new ones."),
    queue_commands.undrain_worker: gettext_lazy("Resumed. The worker receives tasks again."),
    queue_commands.remove_worker: gettext_lazy("Removed from the list."),
}
MAX_QUEUES = 6


class WorkersPage(Page):
    """List of all workers."""

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
    }


def _skew_pill(off: int) -> SafeString | str:
    """Return a warning about a clock that differs from the server's."""
    if not off:
        return ""
    sentence = _("clock ahead by %(span)s") if off > 0 else _("clock behind by %(span)s")
    return render_pill("failed", sentence % {"span": format_duration(abs(off))}, "warning")
