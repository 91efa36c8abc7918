"""View model of a standalone task: its state and the reason, its attempts, its dependencies and artifacts."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ... import clock
from ...core.states import TASK
from ...insight.durations import format_duration
from ...insight.failures import failure_inbox
from ...insight.standalone.standalone_queues import messages_of
from ...insight.standalone.standalone_waits import (
    RequiredTaskView,
    dependents_of,
    explain_wait,
    requirements_of,
    waits_for_schedule,
)
from ...insight.standalone.task_status import NAMES_OF_PRIORITIES, displayed_state
from ...models import Artifact, Attempt, FailureGroup, StandaloneTask
from ..badges import ACTIVE, mark_names, render_badge, status_tone
from ..queues.queue_list import queue_address
from . import artifact_links
from .group_actions import priority_names
from .page_addresses import group_address, standalone_task_address

MAX_ARTIFACTS = 200
VIEW_FAILURES_PERMISSION = "conductor.view_failuregroup"


@dataclass(frozen=True)
class TaskViewModel:
    """A task, the current time, and the attempt and the artifact that the address selects."""

    standalone: StandaloneTask
    query: Mapping[str, str]
    now: int

    @property
    def name(self) -> str:
        return self.standalone.task.name or self.standalone.pk

    @property
    def state(self) -> str:
        return displayed_state(self.standalone.task.status, self.attempts[-1].status if self.attempts else None)

    @cached_property
    def attempts(self) -> list[Attempt]:
        return self.standalone.attempts

    @property
    def number(self) -> int:
        """Return the number of the selected attempt: the one in the address, otherwise the last one."""
        query = self.query.get("attempt", "")
        requested = int(query) if query.isascii() and query.isdecimal() and len(query) < 4 else len(self.attempts)
        return min(requested, max(len(self.attempts) - 1, 0))

    @property
    def attempt(self) -> Attempt | None:
        return self.attempts[self.number] if self.attempts else None

    @cached_property
    def artifacts(self) -> list[Artifact]:
        """Return the artifacts of the selected attempt."""
        rows = Artifact.objects.of(self.standalone.pk, self.number).filter(is_present=True).order_by("name")
        return list(rows[:MAX_ARTIFACTS]) if self.attempts else []

    @cached_property
    def requirements(self) -> list[RequiredTaskView]:
        return requirements_of(self.standalone)

    @property
    def failure_group(self) -> FailureGroup | None:
        """Return the failure group of the attempt's failure."""
        return failure_inbox.group_of(self.attempt) if self.attempt else None


def task_view_model(standalone: StandaloneTask, query: Mapping[str, str]) -> TaskViewModel:
    """Return the view model for an address."""
    return TaskViewModel(standalone, query, clock.now())


def parts_context(view_model: TaskViewModel, user: User | AnonymousUser) -> dict[str, Any]:
    """Return the context of the parts that refresh."""
    standalone = view_model.standalone
    tone, sentences = _state_sentences(view_model)
    status = standalone.task.status
    return {
        "standalone": standalone,
        "name": view_model.name,
        "badge": render_badge(view_model.state),
        "tone": tone,
        "sentences": [mark_names(each) for each in sentences],
        "queue": queue_address(standalone.queue),
        "group": group_address(standalone.group_id),
        "priority": NAMES_OF_PRIORITIES[standalone.priority],
        "priorities": priority_names(),
        "tries": [_attempt_row(attempt, view_model) for attempt in view_model.attempts],
        "number": view_model.number,
        "failures": view_model.failure_group if user.has_perm(VIEW_FAILURES_PERMISSION) else None,
        "artifacts": [artifact_links.artifact_context(row, view_model.now, user) for row in view_model.artifacts],
        "needed": [_requirement_row(each) for each in view_model.requirements],
        "needs_itself": waits_for_schedule(standalone.pk),
        "dependents": [_requirement_row(each) for each in dependents_of(standalone.pk)],
        "notices": messages_of(standalone.pk),
        "is_open": status in TASK.open,
        "is_blocked": status == "BLOCKED",
        "may_be_prioritized": not standalone.ever_resolved,
        "is_final": status in TASK.final,
    }


def _state_sentences(view_model: TaskViewModel) -> tuple[str, list[str]]:
    """Return the display group of the state, and sentences that explain it."""
    last = view_model.attempts[-1] if view_model.attempts else None
    if waits := explain_wait(view_model.standalone, view_model.requirements, view_model.now):
        return "waiting", waits
    if last is not None and last.status == "LEASED":
        return ACTIVE, [_("Running on worker `%(worker)s`.") % {"worker": last.worker}]
    return status_tone(view_model.state), [_end_sentence(view_model, last)] if last is not None else []


def _end_sentence(view_model: TaskViewModel, last: Attempt) -> str:
    facts = {
        "reason": last.reason,
        "worker": last.worker,
        "count": len(view_model.attempts),
        "span": format_duration((last.ended_at or view_model.now) - (last.started_at or last.scheduled_at)),
    }
    if view_model.state == "COMPLETED":
        return _("Completed by worker `%(worker)s` in %(span)s.") % facts
    if not last.worker:
        return _("Ended with `%(reason)s` before a worker claimed it.") % facts
    message = ngettext(
        "Ended with `%(reason)s` in its only attempt, on worker `%(worker)s` after %(span)s.",
        "Ended with `%(reason)s` in attempt %(count)s, on worker `%(worker)s` after %(span)s.",
        len(view_model.attempts),
    )
    return message % facts


def _attempt_row(attempt: Attempt, view_model: TaskViewModel) -> dict[str, Any]:
    return {
        "attempt": attempt,
        "begun_at": attempt.started_at if attempt.started_at is not None else attempt.ended_at,
        "badge": render_badge(attempt.status),
        "address": f"{standalone_task_address(view_model.standalone.pk)}?attempt={attempt.number}",
        "is_chosen": attempt.number == view_model.number,
        "reason": attempt.reason if attempt.reason != "completed" else "",
    }


def _requirement_row(each: RequiredTaskView) -> tuple[RequiredTaskView, SafeString | str, str]:
    return each, render_badge(each.status) if each.status else "", standalone_task_address(each.id)
