"""The first page: is anything wrong, and what needs a person?"""

from typing import Any

from .. import clock
from ..insight.cause import failures
from ..insight.health import has_failed, is_late
from ..insight.queues import queues
from ..insight.spans import span
from ..insight.waits import first_line
from ..models import Run, SweepPass, WorkflowDefinition
from .marks import ago, badge
from .paginator import MOST_COUNTED
from .run_page import address

MOST_FAILURES = 8


def overview() -> dict[str, Any]:
    """What the front page shows."""
    now = clock.now()
    states = queues()
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
        "failures": _failures(now),
        "counts": _counts(),
        "waiting": sum(queue.pending for queue in states),
        "leased": sum(queue.leased for queue in states),
        "has_definitions": WorkflowDefinition.objects.exists(),
        "has_workers": any(queue.polled_at for queue in states),
        "has_runs": Run.objects.exists(),
    }


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
