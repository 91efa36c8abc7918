"""The current step of each open run, for lists: its task, and what it waits for."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Exists, IntegerField, OuterRef, Q, Subquery, When
from django.utils.translation import gettext as _

from ..core.breakpoints import stops_of
from ..core.states import RUN
from ..runs.models import Attempt, Message, Run
from ..runs.timeline.tree import CONTAINER_STEP_TYPES
from ..tasks.gates import BREAKPOINT, GateFacts, stop_facts
from ..tasks.queries.gate_sentences import GATE_TEXTS
from ..tasks.queries.wait_reasons import WaitReason, persons_of, wait_reason
from ..tasks.queries.waiting import QueuePolls, WaitFacts, facts_of_attempts, polls_of_queues

SEARCHED_ATTEMPTS = 200
"""The newest attempts of a run among which the current one is searched."""


@dataclass(frozen=True, slots=True)
class CurrentStep:
    """The task that an open run works on or waits for. `since`: start of that state; None if the words name a time."""

    task: str
    words: str
    since: int | None


def current_steps(runs: Iterable[Run], now: int) -> dict[str, CurrentStep]:
    """Return the current step of each open run, by run id. Runs at most five queries."""
    by_id = {run.pk: run for run in runs if run.status in RUN.open and not run.is_held and not run.begins_later(now)}
    stopped = {id: _describe_stop(stops, now) for id, run in by_id.items() if (stops := stops_of(run.debug or {}))}
    by_id = {id: run for id, run in by_id.items() if id not in stopped}
    attempts = _current_attempts(by_id) if by_id else []
    for attempt in attempts:
        attempt.run = by_id[attempt.run_id or ""]
    pending = [attempt for attempt in attempts if attempt.status == "PENDING" and attempt.queue]
    gates = facts_of_attempts(pending, now) if pending else {}
    polls, persons = polls_of_queues(now) if pending else {}, persons_of(attempts, now)
    for each in attempts:
        facts = WaitFacts(gates[each.pk], polls.get(each.queue, QueuePolls())) if each.pk in gates else None
        stopped[each.run_id or ""] = _describe(each, wait_reason(each, facts, now, person=persons.get(each.pk, "")))
    return stopped


def _describe(attempt: Attempt, reason: WaitReason) -> CurrentStep:
    if getattr(attempt, "is_undelivered", False) and not attempt.queue:
        return CurrentStep(str(attempt.task), _("message not delivered"), attempt.scheduled_at)
    return CurrentStep(str(attempt.task), reason.brief, reason.since)


def _describe_stop(stops: Mapping[str, Mapping[str, Any]], now: int) -> CurrentStep:
    """Return the stop of a run at a breakpoint, in the words of the gate."""
    first = next(iter(stops.values()))
    return CurrentStep(
        first["task"], GATE_TEXTS[BREAKPOINT.name].brief(GateFacts(now, 0, **stop_facts(first))), first["since"]
    )


def _current_attempts(run_ids: Collection[str]) -> list[Attempt]:
    """Return the attempt of each run that `interest_sort_key` puts first, among its newest attempts."""
    rank = Case(
        When(task__type__in=CONTAINER_STEP_TYPES, then=3),
        When(status="PENDING", then=0),
        When(queue="", then=1),
        default=2,
        output_field=IntegerField(),
    )
    of_run = Attempt.objects.open().filter(run_id=OuterRef("pk"), seq__gte=OuterRef("next_seq") - SEARCHED_ATTEMPTS)
    first = of_run.order_by(rank, "seq").values("pk")[:1]
    ids = Run.objects.filter(pk__in=list(run_ids)).annotate(current=Subquery(first)).values("current")
    to_run_or_child = Q(to=OuterRef("run_id")) | (Q(to=OuterRef("child_id")) & ~Q(to=""))
    lost = Message.objects.undelivered().filter(to_run_or_child)
    found = Attempt.objects.defer_payloads().filter(pk__in=ids).select_related("task").defer("task__step_state")
    return list(found.annotate(is_undelivered=Exists(lost)))
