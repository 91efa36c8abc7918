"""Why one task waits: every gate with its verdict, who holds the shut ones, and when its turn comes."""

from typing import Any

from django.http import HttpRequest

from ... import clock
from ...core.errors import NotFound
from ...insight.explain import shut, verdicts_on
from ...insight.position import position
from ...models import TaskDefinition
from ..marks import badge, marked
from ..object_pages import ObjectPage
from ..runs.panel import readable
from .queues import PERMISSION, queue_address


class TurnPage(ObjectPage):
    """One task in its queue."""

    name, template, permission = "turn", "ops/turn.html", "conductor.view_attempt"
    live_template = "ops/turn/gates.html"
    route = "turn/<str:attempt_id>/"

    def shown(self, request: HttpRequest, **which: Any) -> dict[str, Any]:
        now = clock.now()
        attempt = readable().filter(pk=which["attempt_id"]).first()
        if attempt is None:
            raise NotFound(f"There is no task {which['attempt_id'][:64]}.")
        verdicts = verdicts_on(attempt, now)
        closed = shut(verdicts)
        return {
            "title": f"Why {attempt.task} waits",
            "attempt": attempt,
            "badge": badge(attempt.status),
            "verdicts": [(verdict, marked(verdict.sentence)) for verdict in verdicts],
            "is_waiting": bool(verdicts),
            "first": marked(closed[0].sentence) if closed else "",
            "position": position(attempt, now),
            "definition": TaskDefinition.objects.filter(name=attempt.name).only("pk").first(),
            "queue": queue_address(attempt.queue) if attempt.queue else "",
            "may_act": request.user.has_perm(PERMISSION),
        }
