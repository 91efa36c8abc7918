"""The current step of each open run, for lists: its task, and what it waits for."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Exists, IntegerField, OuterRef, Q, Subquery, When
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..core.breakpoints import stops_of
from ..core.snapshot import NEVER
from ..core.states import RUN
from ..core.step_types.loops import DoWhile
from ..core.step_types.sub_workflows import SubWorkflow
from ..core.step_types.waiting import Human, Wait
from ..runs.models import Attempt, Message, Run
from ..runs.timeline.tree import CONTAINER_STEP_TYPES
from ..tasks.gates import BREAKPOINT, GATES, GateFacts, stop_facts
from ..tasks.queries.gate_sentences import GATE_TEXTS
from ..tasks.queries.waiting import QUIET_AFTER_MS, facts_of_attempts, last_polls
from ..utils.formatting import format_duration

SEARCHED_ATTEMPTS = 200
"""The newest attempts of a run among which the current one is searched."""


@dataclass(frozen=True, slots=True)
class CurrentStep:
    """The task that an open run works on or waits for. `since`: start of that state; None if the words name a time."""

    task: str
    words: str
    since: int | None


def current_steps(runs: Iterable[Run], now: int) -> dict[str, CurrentStep]:
    """Return the current step of each open run, by run id. Runs at most four queries."""
    by_id = {run.pk: run for run in runs if run.status in RUN.open and not run.is_held and not run.begins_later(now)}
    stopped = {id: _describe_stop(stops, now) for id, run in by_id.items() if (stops := stops_of(run.debug or {}))}
    by_id = {id: run for id, run in by_id.items() if id not in stopped}
    attempts = _current_attempts(by_id) if by_id else []
    for attempt in attempts:
        attempt.run = by_id[attempt.run_id or ""]
    pending = [attempt for attempt in attempts if attempt.status == "PENDING" and attempt.queue]
    facts = facts_of_attempts(pending, now) if pending else {}
    polls = last_polls() if pending else {}
    return stopped | {each.run_id or "": _describe(each, facts.get(each.pk), polls, now) for each in attempts}


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


def _describe(attempt: Attempt, facts: GateFacts | None, polls: dict[str, tuple[int, int]], now: int) -> CurrentStep:
    task = str(attempt.task)
    if getattr(attempt, "is_undelivered", False) and not attempt.queue:
        return CurrentStep(task, _("message not delivered"), attempt.scheduled_at)
    if facts is not None:
        return _describe_pending(attempt, facts, polls.get(attempt.queue, (0, None))[1], now)
    if attempt.queue:
        worker = _("on %(worker)s") % {"worker": attempt.worker} if attempt.worker else _("in progress")
        return CurrentStep(task, worker, attempt.claimed_at or attempt.started_at)
    if attempt.task.type == Wait.type and now < attempt.ends_at < NEVER:
        left = _("waiting, %(left)s left") % {"left": format_duration(attempt.ends_at - now)}
        return CurrentStep(task, left, None)
    return CurrentStep(task, _engine_words(attempt), attempt.scheduled_at)


def _describe_pending(attempt: Attempt, facts: GateFacts, polled_at: int | None, now: int) -> CurrentStep:
    task = str(attempt.task)
    if attempt.visible_at > now and attempt.number and not attempt.poll_count:
        left = {"number": attempt.number + 1, "left": format_duration(attempt.visible_at - now)}
        return CurrentStep(task, _("attempt %(number)s in %(left)s") % left, None)
    closed = next((gate for gate in GATES if not gate.lets_pass(facts)), None)
    if closed is not None:
        return CurrentStep(
            task, GATE_TEXTS[closed.name].brief(facts), None if attempt.visible_at > now else attempt.pending_since
        )
    is_polled = polled_at is not None and now - polled_at < QUIET_AFTER_MS
    return CurrentStep(task, _("queued") if is_polled else _("no workers"), attempt.pending_since)


def _engine_words(attempt: Attempt) -> str:
    words = ENGINE_WORDS.get(attempt.task.type)
    return words(attempt) if words else _("waiting")


ENGINE_WORDS: dict[str, Callable[[Attempt], Any]] = {
    Human.type: lambda attempt: gettext_lazy("human task"),
    SubWorkflow.type: lambda attempt: gettext_lazy("sub-workflow"),
    DoWhile.type: lambda attempt: _("iteration %(number)s") % {"number": attempt.task.iteration},
}
