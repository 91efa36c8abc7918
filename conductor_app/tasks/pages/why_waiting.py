"""Page that explains why one task waits: the result of each gate, the holders of limits, and the queue position."""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ...core.errors import NotFound
from ...definitions.models import TaskDefinition
from ...runs.models import Attempt
from ...runs.queries.recent import run_keys
from ...utils import clock
from ...web.badges import mark_names, render_badge
from ...web.links import queue_address, run_address
from ...web.pages import ObjectPage
from ..queries.queues import attempts_ahead, queue_position
from ..queries.waiting import GateVerdict, closed_gates, gate_facts, verdicts_on
from .actions import task_actions
from .task_panel import attempts_for_panel

MAX_AHEAD = 10
"""Number of attempts ahead in the queue that the page lists."""


class WhyWaitingPage(ObjectPage):
    """Page about one pending task."""

    name, template, permission = "why_waiting", "ops/tasks/why_waiting.html", "conductor.view_attempt"
    live_template = "ops/tasks/why_waiting_gates.html"
    route = "why-waiting/<str:attempt_id>/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        """Return the gates, the limits and the queue position of the attempt.

        Raises:
            NotFound: when there is no such attempt.
        """
        now = clock.now()
        attempt = attempts_for_panel().filter(pk=url_kwargs["attempt_id"]).first()
        if attempt is None:
            raise NotFound(f"No such task: {url_kwargs['attempt_id'][:64]}.")
        facts = gate_facts(attempt, now)
        verdicts = verdicts_on(attempt, now, facts)
        closed = closed_gates(verdicts)
        is_polled = all(verdict.gate != "polled" for verdict in closed)
        position = queue_position(attempt, now, facts, is_polled=is_polled)
        ahead = _load_attempts_ahead(attempt, now) if position and position.ahead else []
        definition = TaskDefinition.objects.filter(name=attempt.name).only("pk").first()
        return {
            "title": _("Why is %(task)s waiting?") % {"task": attempt.task},
            "attempt": attempt,
            "badge": render_badge(attempt.status),
            "verdicts": [(verdict, mark_names(verdict.sentence)) for verdict in verdicts],
            "is_waiting": bool(verdicts),
            "first": mark_names(closed[0].sentence) if closed else "",
            "position": position,
            "ahead": ahead,
            "more_ahead": position.ahead - len(ahead) if position else 0,
            "state": _state_sentence(attempt),
            "of_run": _run_sentence(attempt),
            "in_queue": _queue_sentence(attempt),
            "task_acts": task_actions(attempt, now, request.user.has_perm),
            "definition": definition,
            "run_keys": run_keys(_run_ids(attempt, verdicts, ahead)),
            "limit_address": _limit_address(definition, request) if definition else "",
            "queue": queue_address(attempt.queue) if attempt.queue else "",
        }


def _run_ids(attempt: Attempt, verdicts: Iterable[GateVerdict], ahead: Iterable[Attempt]) -> Iterator[str]:
    """Yield the ids of the runs that the page names."""
    yield from (each.run_id or "" for each in (attempt, *ahead))
    yield from (holder.run_id or "" for verdict in verdicts for holder in verdict.holders)


def _load_attempts_ahead(attempt: Attempt, now: int) -> list[Attempt]:
    """Return the first attempts that are dispatched before this one."""
    rows = attempts_ahead(attempt, now).defer_payloads().select_related("task", "run")
    payloads = [f"run__{name}" for name in ("input", "output", "variables")]
    return list(rows.defer("input", "output", "task__step_state", *payloads)[:MAX_AHEAD])


def _limit_address(definition: TaskDefinition, request: HttpRequest) -> str:
    """Return the address of the limits: the form for users who may change them, otherwise the page."""
    if request.user.has_perm("conductor.change_taskdefinition"):
        return reverse("admin:taskdefinition_form", args=[definition.pk]) + "#id_concurrentExecLimit"
    return reverse("admin:conductor_taskdefinition_change", args=[definition.pk])


def _run_sentence(attempt: Attempt) -> SafeString:
    run, query = attempt.own_run, urlencode({"task": str(attempt.task)})
    link = format_html('<a href="{}?{}">{} v{}</a>', run_address(run.pk), query, run.name, run.version)
    return format_html(_("Workflow {run}"), run=link)


def _queue_sentence(attempt: Attempt) -> SafeString:
    link = format_html('<a href="{}">{}</a>', queue_address(attempt.queue), attempt.queue)
    return format_html(_("Queue {queue}"), queue=link)


def _state_sentence(attempt: Attempt) -> str:
    facts = {"status": attempt.status.replace("_", " ").lower(), "worker": attempt.worker}
    return (_("Status: %(status)s, worker %(worker)s.") if attempt.worker else _("Status: %(status)s.")) % facts
