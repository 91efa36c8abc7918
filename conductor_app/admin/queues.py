"""Queues: what waits in them, since when, and who asks for it."""

from typing import Any

from django.http import HttpRequest

from .. import clock
from ..insight.queues import QueueState, queues
from ..insight.spans import span
from .marks import ago
from .pages import Page


class QueuesPage(Page):
    """Why is work not moving?"""

    name, title, template, permission = "queues", "Queues", "ops/queues.html", "conductor.view_attempt"

    def context(self, request: HttpRequest) -> dict[str, Any]:
        now = clock.now()
        return {"queues": [_shown(queue, now) for queue in queues()]}


def _shown(queue: QueueState, now: int) -> dict[str, Any]:
    return {
        "queue": queue,
        "oldest": span(now - queue.oldest_at) if queue.oldest_at else "–",
        "polled": ago(queue.polled_at, now),
        "is_polled": queue.is_polled(now),
        "is_neglected": queue.is_neglected(now),
    }
