"""Page of one worker: its state, its queues, and its attempts over time."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from ... import clock
from ...core.errors import NotFound
from ...core.fingerprints import build_of
from ...insight.queues.workers import find_worker
from ...models import MinuteCount
from ..object_pages import ObjectPage
from .queue_list import queue_address
from .throughput_chart import throughput_chart
from .worker_states import render_worker_state


class WorkerPage(ObjectPage):
    """Page of one worker."""

    name, template, permission = "worker", "ops/worker.html", "conductor.view_poller"
    live_template = "ops/workers/detail.html"
    route = "worker/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        now, name = clock.now(), request.GET.get("name", "")
        if not name or "\0" in name or len(name) > 255:
            raise NotFound(_("No such worker."))
        worker = find_worker(name, now)
        return {
            "title": name,
            "worker": worker,
            "build": build_of(name),
            "state": render_worker_state(worker, now) if worker else "",
            "queues": [(queue, queue_address(queue)) for queue in worker.queues] if worker else [],
            "actions": reverse("admin:workers", query={"q": name}),
            **throughput_chart(request, MinuteCount.WORKER, name, now),
        }


def worker_address(name: str) -> str:
    """Return the address of the page of a worker."""
    return reverse("admin:worker", query={"name": name})
