"""Explanation of why a standalone task is waiting: deadline, dependencies, gates of its queue, quarantined workers."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Count, OuterRef, Q, Subquery
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...models import Attempt, Dependency, StandaloneTask, Worker
from ..queues.gate_verdicts import closed_gates, gate_facts, verdicts_on
from ..queues.queue_position import queue_position
from .task_status import displayed_state

MAX_NAMED = 200


@dataclass(frozen=True, slots=True)
class RequiredTaskView:
    """One dependency. `is_hopeless`: the required task ended in a way that does not satisfy the dependency."""

    id: str
    name: str
    status: str
    is_satisfied: bool
    is_hopeless: bool = False


def requirements_of(standalone: StandaloneTask) -> list[RequiredTaskView]:
    """Return the dependencies of a task, unsatisfied ones first, without the task itself."""
    edges = Dependency.objects.filter(task_id=standalone.pk).exclude(required_id=standalone.pk)
    rows = list(edges.order_by("is_satisfied", "required_id").values_list("required_id", "is_satisfied")[:MAX_NAMED])
    facts = {id: (name, state) for id, name, state in _names_and_states([id for id, _met in rows])}
    found = []
    for id, is_satisfied in rows:
        name, status = facts.get(id, ("", ""))
        is_hopeless = not is_satisfied and (not status or status in ("FAILED", "TIMED_OUT", "CANCELED"))
        found.append(RequiredTaskView(id, name or id, status, is_satisfied, is_hopeless))
    return found


def dependents_of(task_id: str) -> list[RequiredTaskView]:
    """Return the tasks that depend on a task."""
    edges = dict(
        Dependency.objects.filter(required_id=task_id)
        .exclude(task_id=task_id)
        .order_by("task_id")
        .values_list("task_id", "is_satisfied")[:MAX_NAMED]
    )
    return [RequiredTaskView(id, name or id, state, edges[id]) for id, name, state in _names_and_states(list(edges))]


def _names_and_states(ids: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the id, the name and the state of tasks, in the order of their ids."""
    last = Attempt.objects.filter(pk=OuterRef("task__attempt_id")).values("status")[:1]
    rows = StandaloneTask.objects.filter(pk__in=ids).order_by("pk").annotate(last_status=Subquery(last))
    for id, name, status, last_status in rows.values_list("pk", "task__name", "task__status", "last_status"):
        yield id, name, displayed_state(status, last_status)


def waits_for_schedule(task_id: str) -> bool:
    """Return True if the task depends on itself, so that a client must schedule it."""
    return Dependency.objects.filter(task_id=task_id, required_id=task_id).exists()


def explain_wait(standalone: StandaloneTask, needed: list[RequiredTaskView], now: int) -> list[str]:
    """Return why a task is waiting, as sentences, most important first. Names are in backticks.

    Empty if the task is not waiting.
    """
    if standalone.task.status == "BLOCKED":
        return [*_late(standalone, now), *_blocked_sentence(standalone, needed)]
    last = standalone.attempts[-1] if standalone.attempts else None
    if last is None or last.status != "PENDING":
        return []
    return [*_late(standalone, now), *_in_its_queue(standalone, last, now)]


def _late(standalone: StandaloneTask, now: int) -> list[str]:
    return [_("The deadline has passed. The task is about to be resolved.")] if standalone.deadline_at < now else []


def _blocked_sentence(standalone: StandaloneTask, needed: list[RequiredTaskView]) -> list[str]:
    left = [each for each in needed if not each.is_satisfied]
    hopeless = next((each for each in left if each.is_hopeless), None)
    sentences = []
    if hopeless is not None:
        sentences.append(
            _("Dependency `%(name)s` did not succeed. Rerun it, or schedule this task manually.")
            % {"name": hopeless.name}
        )
    if left:
        first = ngettext("Waiting for `%(name)s`.", "Waiting for %(count)s tasks, including `%(name)s`.", len(left))
        sentences.append(first % {"name": left[0].name, "count": len(left)})
    if waits_for_schedule(standalone.pk):
        sentences.append(_("The task depends on itself and must be scheduled manually."))
    return sentences or [_("Waiting to be scheduled.")]


def _in_its_queue(standalone: StandaloneTask, attempt: Attempt, now: int) -> list[str]:
    facts = gate_facts(attempt, now)
    closed = closed_gates(verdicts_on(attempt, now, facts))
    is_polled = all(verdict.gate != "polled" for verdict in closed)
    place = queue_position(attempt, now, facts, is_polled=is_polled)
    return [
        *(verdict.sentence for verdict in closed),
        *_quarantine(standalone.queue, now),
        *([place.sentence] if place else []),
    ]


def _quarantine(queue: str, now: int) -> list[str]:
    counted = Worker.objects.filter(queue=queue, expires_at__gt=now).aggregate(
        all=Count("pk"), shut=Count("pk", filter=Q(quarantine_until__gt=now))
    )
    if not counted["all"] or counted["shut"] < counted["all"]:
        return []
    sentence = ngettext(
        "The only worker of queue `%(queue)s` is quarantined.",
        "All %(count)s workers of queue `%(queue)s` are quarantined.",
        counted["all"],
    )
    return [sentence % {"queue": queue, "count": counted["all"]}]
