"""The first page: is anything wrong, and what needs a person?"""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from ... import clock
from ...core.states import FAILURE
from ...insight.cause import failures
from ...insight.health import has_failed, is_late
from ...insight.people import waiting
from ...insight.pulse import beats, late
from ...insight.queues import queues
from ...insight.spans import span
from ...insight.waits import first_line
from ...models import BulkOperation, FailureGroup, Run, SweepPass, WorkflowDefinition
from ..marks import ago, badge
from ..pages import Page
from ..paginator import MOST_COUNTED
from ..runs.page import address

MOST_FAILURES = 8
MOST_PEOPLE = 100


class PulsePage(Page):
    """The last hour beside a week ago, and what takes longer than usual: a fragment of the front page."""

    name, permission, title, template = "pulse", "conductor.view_run", "Pulse", "ops/overview/pulse_page.html"
    live_template = "ops/overview/pulse.html"

    def context(self, request: HttpRequest) -> dict[str, Any]:
        now = clock.now()
        runs = reverse("admin:conductor_run_changelist")
        return {
            "beats": [(beat, f"{runs}?{urlencode(beat.asked)}") for beat in beats(now)],
            "late": [{"run": run, "usual": usual, "address": address(run.pk)} for run, usual in late(now)],
        }


def overview() -> dict[str, Any]:
    """What the front page shows."""
    now = clock.now()
    states, counts = queues(), _counts()
    some = any(count["count"] for count in counts)
    has_definitions = some or WorkflowDefinition.objects.exists()
    return {
        "neglected": [
            {"queue": queue, "oldest": span(now - (queue.oldest_at or now))}
            for queue in states
            if queue.is_neglected(now)
        ],
        "troubled_sweeps": [
            {"sweep": sweep, "is_late": is_late(sweep, now), "began": ago(sweep.began_at, now)}
            for sweep in SweepPass.objects.order_by("name")
            if is_late(sweep, now) or has_failed(sweep)
        ],
        "proposed": list(BulkOperation.objects.waiting_for_approval()[:MOST_FAILURES]),
        **_failed(now, counts),
        "people": waiting().order_by()[:MOST_PEOPLE].count(),
        "most_people": MOST_PEOPLE,
        "counts": counts,
        "waiting": sum(queue.pending for queue in states),
        "leased": sum(queue.leased for queue in states),
        "has_definitions": has_definitions,
        "has_workers": any(queue.polled_at for queue in states),
        "has_runs": some or (has_definitions and Run.objects.exists()),
    }


def _failed(now: int, counts: list[dict[str, Any]]) -> dict[str, Any]:
    """What fails: the groups that nobody has dealt with; runs one by one only until the first group is made."""
    groups = FailureGroup.objects.own().filter(state__in=sorted(FAILURE.open)).order_by("-last_at")[:MOST_FAILURES]
    shown = [{"group": group, "at": ago(group.last_at, now)} for group in groups]
    is_any = any(count["count"] for count in counts if count["status"] == "FAILED")
    return {"groups": shown, "failures": _failures(now) if is_any and not shown else []}


def _newest(status: str) -> list[Run]:
    runs = Run.objects.light().filter(status=status).order_by("-created_at")
    return list(runs.defer("input", "output", "variables", "domains")[:MOST_FAILURES])


def _failures(now: int) -> list[dict[str, Any]]:
    runs = _newest("FAILED")
    failed = failures(runs)
    return [_failure(run, *failed.get(run.pk, ("", first_line(run.reason, 200))), now) for run in runs]


def _failure(run: Run, task: str, reason: str, now: int) -> dict[str, Any]:
    return {"run": run, "address": address(run.pk), "at": ago(run.ended_at, now), "task": task, "reason": reason}


def _counts() -> list[dict[str, Any]]:
    """How many runs are open in each status, counted up to a bound."""
    return [{"status": status, "badge": badge(status), **_count(status)} for status in ("RUNNING", "PAUSED", "FAILED")]


def _count(status: str) -> dict[str, Any]:
    count = Run.objects.filter(status=status).order_by()[: MOST_COUNTED + 1].count()
    return {"count": min(count, MOST_COUNTED), "is_capped": count > MOST_COUNTED}
