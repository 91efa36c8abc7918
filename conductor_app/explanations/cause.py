"""Why a run waits or has failed: one sentence about its status; and the current step of each open run, for lists.

Names are in backticks. The number of queries does not depend on the number of runs, so that lists of runs can show it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Exists, IntegerField, OuterRef, Q, Subquery, When
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ..access.visibility import visible
from ..core.breakpoints import stops_of
from ..core.failure_grouping import informative_line
from ..core.states import COMPLETED, FAILED, PAUSED, RUN, RUNNING, TERMINATED, TIMED_OUT
from ..core.step_types.decisions import Terminate
from ..definitions.store import attempts_allowed, parsed_definition
from ..runs.models import Attempt, Message, Run
from ..runs.queries.messages import WaitingMessage, undelivered_to
from ..runs.queries.recent import last_transition
from ..runs.timeline.tree import CONTAINER_STEP_TYPES
from ..tasks.gates import BREAKPOINT, RUN_SLOT, GateFacts, stop_facts
from ..tasks.queries.queue_states import QueuePolls, polls_of_queues
from ..tasks.queries.waiting import (
    GateVerdict,
    WaitFacts,
    WaitReason,
    facts_of_attempts,
    interest_sort_key,
    load_wait_facts,
    name_attempt,
    persons_of,
    verdicts_on,
    wait_reason,
)
from ..utils import clock
from ..utils.formatting import format_duration, format_elapsed, format_timestamp

MAX_DEPTH = 3
"""Levels of sub-workflows that are searched for the first failure."""
NO_REASON = "no reason given"
"""Text of lists and exports. Sentences use its translation."""
MAX_READ = 200
"""Open attempts that are read to choose the one that the sentence names."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause sentence with the task, attempt and child run it names, and the gate verdicts of a pending attempt."""

    sentence: str
    task: str = ""
    attempt_id: str = ""
    child_id: str = ""
    verdicts: tuple[GateVerdict, ...] = ()
    is_waiting: bool = False
    """True if no worker holds the attempt that the sentence names."""
    message_id: int = 0
    """The undelivered message that the run waits for."""
    attempts: tuple[Attempt, ...] = ()
    """The attempts that were read with their tasks to find the cause."""
    shown_attempt_id: str = ""
    shown_verdicts: tuple[GateVerdict, ...] = ()
    """The open attempt of the task that the caller shows beside the cause, and the gate verdicts on it."""
    is_stuck: bool = False
    """True if the attempt that the sentence names waits for more than its turn, and not for other tasks."""
    person: str = ""
    """For whom the attempt waits, if it is a human task."""


def run_cause(run: Run, now: int | None = None, shown: str = "") -> Cause:
    """Return why the run has its current status.

    `shown`: a task whose gate verdicts are loaded with those of the cause, which takes fewer queries.
    """
    now = clock.now() if now is None else now
    return _running_cause(run, now, shown) if run.status == RUNNING else CAUSES[run.status](run, now)


def failure_reasons(runs: Iterable[Run]) -> dict[str, tuple[str, str]]:
    """Return the failed task and the informative line of its reason for each failed run, by run id. Runs one query."""
    failed = {run.failed_attempt_id: run for run in runs if run.failed_attempt_id}
    attempts = Attempt.objects.defer_payloads().filter(pk__in=list(failed)).select_related("task") if failed else ()
    found = {}
    for attempt in attempts:
        run = failed[attempt.pk]
        reason = run.reason if _is_terminate_step(attempt) else attempt.reason
        found[run.pk] = (str(attempt.task), informative_line(reason, 200) or str(NO_REASON))
    return found


def _is_terminate_step(attempt: Attempt) -> bool:
    """Return True if the run ended as its TERMINATE step says. The step itself is completed; the run has the reason."""
    return attempt.task.type == Terminate.type and attempt.status == COMPLETED


def _running_cause(run: Run, now: int, shown: str = "") -> Cause:
    if run.begins_later(now):
        until = {"moment": format_timestamp(run.created_at), "left": format_elapsed(run.created_at - now)}
        return Cause(_("Waiting: scheduled to start at %(moment)s, in %(left)s") % until, is_waiting=True)
    if run.is_held:
        sentence = RUN_SLOT.sentence(GateFacts(now, 0, is_run_held=True))
        return Cause(_("Waiting: %(what)s") % {"what": sentence[:1].lower() + sentence[1:]}, is_waiting=True)
    if stops := stops_of(run.debug or {}):
        return _stopped_cause(run, stops, now)
    attempts = sorted(_open_attempts(run), key=interest_sort_key)
    if waited_for := _undelivered_messages(run, attempts):
        return _undelivered_cause(run, waited_for[0])
    if not attempts:
        return Cause(_("Waiting: the engine is about to schedule the next step"), is_waiting=True)
    first, others = attempts[0], len(attempts) - 1
    is_waiting = not (first.status == "LEASED" and first.queue)
    others_open = ngettext(" · %(count)s more active task", " · %(count)s more active tasks", others)
    more = others_open % {"count": others} if others else ""
    other = next((each for each in attempts if shown and str(each.task) == shown), first)
    facts = load_wait_facts([first] if other is first else [first, other], now)
    tries = attempts_allowed(parsed_definition(run.resolved_definition_id), first.task)
    person = persons_of([first], now).get(first.pk, "")
    reason = wait_reason(first, facts.get(first.pk), now, tries=tries, person=person)
    verdicts = tuple(verdicts_on(first, now, facts.get(first.pk)))
    what = reason.sentence + _wait_inside(first, now) + more
    whole = (_("Waiting: %(what)s") if is_waiting else _("Running: %(what)s")) % {"what": what}
    return Cause(
        whole,
        str(first.task),
        first.id,
        first.child_id,
        verdicts,
        is_waiting,
        attempts=tuple(attempts),
        shown_attempt_id=other.pk,
        shown_verdicts=verdicts if other is first else tuple(verdicts_on(other, now, facts.get(other.pk))),
        is_stuck=is_waiting and reason.kind != "queued" and first.task.type not in CONTAINER_STEP_TYPES,
        person=person,
    )


def _stopped_cause(run: Run, stops: Mapping[str, Mapping[str, Any]], now: int) -> Cause:
    """Return that the run stands at a breakpoint. The gate has the same sentence for the attempt."""
    attempt_id, first = next(iter(stops.items()))
    others = len(stops) - 1
    more = ngettext(" · %(count)s more stopped task", " · %(count)s more stopped tasks", others) % {"count": others}
    sentence = BREAKPOINT.sentence(GateFacts(now, 0, **stop_facts(first))).rstrip(".")
    attempt = Attempt.objects.defer_payloads().filter(pk=attempt_id).select_related("task").first()
    facts = {"task": attempt.task.label if attempt else first["task"], "what": sentence[:1].lower() + sentence[1:]}
    whole = _("Waiting: `%(task)s` — %(what)s") % facts
    if attempt is not None:
        attempt.run = run
    verdicts = tuple(verdicts_on(attempt, now)) if attempt is not None else ()
    return Cause(
        whole + (more if others else ""),
        first["task"],
        attempt_id,
        verdicts=verdicts,
        is_waiting=True,
        attempts=(attempt,) if attempt is not None else (),
        is_stuck=True,
    )


def _undelivered_messages(run: Run, attempts: list[Attempt]) -> list[WaitingMessage]:
    """Return the undelivered messages that the run may wait for. A run that only waits for workers needs none."""
    if attempts and all(attempt.queue for attempt in attempts):
        return []
    return undelivered_to([run.pk, *(attempt.child_id for attempt in attempts if attempt.child_id)])


def _undelivered_cause(run: Run, message: WaitingMessage) -> Cause:
    """Return that the run waits for a message to it, or to one of its sub-workflows."""
    if message.to == run.pk:
        sentence = _(
            "Waiting: the message `%(subject)s` to this run could not be delivered (%(error)s). "
            "An operator can retry it."
        )
    else:
        sentence = _(
            "Waiting: the message `%(subject)s` to its sub-workflow could not be delivered (%(error)s). "
            "An operator can retry it."
        )
    facts = {"subject": message.subject, "error": informative_line(message.error) or _("no reason given")}
    child_id = "" if message.to == run.pk else message.to
    return Cause(sentence % facts, child_id=child_id, is_waiting=True, message_id=message.id)


def _wait_inside(attempt: Attempt, now: int) -> str:
    """Return the step that the open sub-workflow of an attempt is at, or an empty text if there is none."""
    open_runs = Run.objects.defer_payloads().open().filter(pk=attempt.child_id)
    child = visible(open_runs).first() if attempt.child_id else None
    step = current_steps([child], now).get(child.pk) if child else None
    return _(", which is at `%(task)s`: %(words)s") % {"task": step.task, "words": step.words} if step else ""


def _open_attempts(run: Run) -> list[Attempt]:
    found = (
        Attempt.objects.defer_payloads().open().filter(run_id=run.pk).select_related("task").order_by("seq")[:MAX_READ]
    )
    for attempt in found:
        attempt.run = run
    return list(found)


def _failed_cause(run: Run, now: int) -> Cause:
    return _failure_cause(run, _("Failed: %(reason)s"), _("Failed at `%(task)s`, %(which)s: %(reason)s"))


def _timed_out_cause(run: Run, now: int) -> Cause:
    return _failure_cause(run, _("Timed out: %(reason)s"), _("Timed out at `%(task)s`, %(which)s: %(reason)s"))


def _failure_cause(run: Run, without_task: str, with_task: str) -> Cause:
    """Return `with_task` if the failed task is known, otherwise `without_task` with the run's reason."""
    attempt = _failed_attempt(run)
    if attempt is None:
        return Cause(without_task % {"reason": informative_line(run.reason) or _("no reason given")})
    if _is_terminate_step(attempt):
        return _terminate_step_cause(attempt, run)
    return _cause_at(attempt, run, with_task, MAX_DEPTH)


def _failed_attempt(run: Run) -> Attempt | None:
    return Attempt.objects.defer_payloads().filter(pk=run.failed_attempt_id).select_related("task").first()


def _terminate_step_cause(attempt: Attempt, run: Run) -> Cause:
    sentence = _("Terminated by step `%(task)s`") % {"task": attempt.task.label}
    return Cause(_add_reason(sentence, run.reason), str(attempt.task), attempt.id, attempts=(attempt,))


def _cause_at(attempt: Attempt, run: Run, sentence: str, depth: int) -> Cause:
    which = name_attempt(attempt, attempts_allowed(parsed_definition(run.resolved_definition_id), attempt.task))
    reason = _failure_inside(attempt, depth) or informative_line(attempt.reason) or _("no reason given")
    facts = {"task": attempt.task.label, "which": which, "reason": reason}
    return Cause(sentence % facts, str(attempt.task), attempt.id, attempt.child_id, attempts=(attempt,))


def _failure_inside(attempt: Attempt, depth: int) -> str:
    """Return where the sub-workflow of an attempt failed, or an empty text if no child run failed. Runs one query."""
    if not attempt.child_id or not depth:
        return ""
    child = visible(Run.objects.defer_payloads().filter(pk=attempt.child_id))
    failed = Attempt.objects.defer_payloads().filter(
        pk__in=child.exclude(failed_attempt_id="").values("failed_attempt_id")
    )
    payloads = [f"run__{name}" for name in ("input", "output", "variables")]
    inner = failed.select_related("task", "run").defer("input", "output", "task__step_state", *payloads).first()
    if inner is None or inner.run is None:
        return ""
    if _is_terminate_step(inner):
        return _add_reason(
            _("sub-workflow terminated by step `%(task)s`") % {"task": inner.task.label}, inner.run.reason
        )
    return _cause_at(
        inner, inner.run, _("sub-workflow failed at `%(task)s`, %(which)s: %(reason)s"), depth - 1
    ).sentence


def _terminated_cause(run: Run, now: int) -> Cause:
    attempt = _failed_attempt(run) if run.failed_attempt_id else None
    if attempt is not None and _is_terminate_step(attempt):
        return _terminate_step_cause(attempt, run)
    entry = last_transition(run.pk, "terminate")
    facts = {"by": entry.by if entry else "", "passed": format_elapsed(now - (run.ended_at or now))}
    sentence = _("Terminated by %(by)s %(passed)s ago") if facts["by"] else _("Terminated %(passed)s ago")
    return Cause(_add_reason(sentence % facts, run.reason))


def _paused_cause(run: Run, now: int) -> Cause:
    out = Attempt.objects.filter(run_id=run.pk, status="LEASED").exclude(queue="").count()
    with_workers = ngettext(" · %(count)s task still in progress", " · %(count)s tasks still in progress", out)
    entry = last_transition(run.pk, "pause")
    facts = {"by": entry.by, "passed": format_elapsed(now - entry.at)} if entry else {}
    if facts.get("by"):
        sentence = _("Paused by %(by)s %(passed)s ago") % facts
    else:
        sentence = _("Paused %(passed)s ago") % facts if facts else _("Paused")
    sentence = _add_reason(sentence, entry.reason if entry else "")
    return Cause(sentence + (with_workers % {"count": out} if out else ""))


def _add_reason(sentence: str, reason: str) -> str:
    return f"{sentence}: {informative_line(reason)}" if reason else sentence


def _completed_cause(run: Run, now: int) -> Cause:
    took = format_duration(run.duration_ms(now))
    return Cause(_add_reason(_("Completed in %(took)s") % {"took": took}, run.reason))


CAUSES = {
    PAUSED: _paused_cause,
    FAILED: _failed_cause,
    TIMED_OUT: _timed_out_cause,
    TERMINATED: _terminated_cause,
    COMPLETED: _completed_cause,
}


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
    return CurrentStep(first["task"], BREAKPOINT.brief(GateFacts(now, 0, **stop_facts(first))), first["since"])


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
