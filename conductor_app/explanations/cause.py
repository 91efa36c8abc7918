"""Why a run waits or has failed, its current step, and where a breakpoint stops it.

The cause is one sentence about the status of the run. Names are in backticks. The number of queries does not depend on
the number of runs, so that lists of runs can show it. Values that the debugger shows stay masked.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Exists, IntegerField, OuterRef, Q, Subquery, When
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ..core.breakpoints import (
    Breakpoint,
    breakpoints_of,
    evaluate_values,
    require_expression,
    split_expression,
    stops_of,
)
from ..core.errors import Invalid
from ..core.expressions import MISSING, resolve_template
from ..core.failure_grouping import informative_line
from ..core.snapshot import NEVER
from ..core.states import COMPLETED, FAILED, PAUSED, RUN, RUNNING, TERMINATED, TIMED_OUT
from ..core.step_types.loops import DoWhile
from ..core.step_types.sub_workflows import SubWorkflow
from ..core.step_types.waiting import Human, Wait
from ..definitions.store import attempts_allowed, parsed_definition
from ..runs.documents.workflows import find_run
from ..runs.models import Attempt, Message, Run
from ..runs.queries.messages import WaitingMessage, undelivered_to
from ..runs.queries.recent import last_transition
from ..runs.timeline.tree import CONTAINER_STEP_TYPES
from ..tasks.gates import BREAKPOINT, GATES, GateFacts, stop_facts
from ..tasks.queries.gate_sentences import GATE_TEXTS
from ..tasks.queries.queues import describe_wait, interest_sort_key
from ..tasks.queries.tasks import find_task
from ..tasks.queries.waiting import (
    QUIET_AFTER_MS,
    GateVerdict,
    facts_of_attempts,
    last_polls,
    verdicts_on,
    verdicts_on_attempts,
)
from ..utils import clock
from ..utils.formatting import format_duration, format_elapsed, format_timestamp

PAYLOADS = ("input", "output", "variables")


@dataclass(frozen=True, slots=True)
class StopDetails:
    """One stop of a run. `payload`: the payload that can be changed here, `input` or `output`."""

    attempt_id: str
    task: str
    type: str
    place: str
    sentence: str
    by: str
    since: int
    until: int
    payload: str
    value: Any
    can_step_into: bool


def stops_of_run(run: Run, now: int) -> list[StopDetails]:
    """Return the stops of a run, earliest first, with the payloads of their tasks. Runs one query, or none."""
    stops = stops_of(run.debug or {})
    if not stops or run.ended_at is not None:
        return []
    attempts = Attempt.objects.filter(pk__in=list(stops)).select_related("task")
    found = [_stop_details(attempt, stops[attempt.pk], now) for attempt in attempts]
    return sorted(found, key=lambda stop: (stop.since, stop.task))


def _stop_details(attempt: Attempt, stop: Mapping[str, Any], now: int) -> StopDetails:
    payload = "output" if stop["place"] == "after" else "input"
    is_stored_outside = bool(getattr(attempt, f"{payload}_path"))
    return StopDetails(
        attempt_id=attempt.pk,
        task=stop["task"],
        type=attempt.task.type,
        place=stop["place"],
        sentence=GATE_TEXTS[BREAKPOINT.name].sentence(GateFacts(now, 0, **stop_facts(stop))),
        by=stop["by"],
        since=stop["since"],
        until=stop["until"],
        payload="" if is_stored_outside else payload,
        value=None if is_stored_outside else getattr(attempt, payload),
        can_step_into=stop["place"] == "before" and attempt.task.type == SubWorkflow.type,
    )


def live_breakpoints_of(debug: Mapping[str, Any] | None, now: int) -> list[Breakpoint]:
    """Return the breakpoints that have not expired, without temporary ones."""
    return [each for each in breakpoints_of(debug or {}) if now < each.until and not each.is_temporary]


def evaluate_expression(run_id: str, text: str) -> Any:
    """Return the value of an expression in the context of a run. Nothing is changed, and masked values are `***`.

    Raises:
        NotFound: when there is no such run.
        Invalid: when the expression cannot be read or evaluated.
    """
    require_expression(text)
    run = find_run(run_id, PAYLOADS)
    _script, references = split_expression(text)
    scope = MaskedScope(run)
    values = {name: resolve_template(reference, scope.value) for name, reference in references.items()}
    result = evaluate_values(text, values)
    if result.error:
        raise Invalid(f"The expression cannot be evaluated: {result.error}"[:500])
    return result.value


class MaskedScope:
    """The values that expressions can read of a run, as pages show them."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.attempts: dict[str, Attempt | None] = {}

    def value(self, root: str, key: str) -> Any:
        """Return the value of a reference, or MISSING."""
        if root == "workflow":
            return self._run_value(key)
        attempt = self._attempt_of(root)
        if attempt is None:
            return MISSING
        if key in ("input", "output"):
            _require_in_row(attempt, key, root)
            return getattr(attempt, key)
        facts = {
            "status": attempt.status,
            "reasonForIncompletion": attempt.reason or None,
            "retryCount": attempt.number,
            "workerId": attempt.worker or None,
            "taskId": attempt.pk,
            "referenceTaskName": str(attempt.task),
        }
        return facts.get(key, MISSING)

    def _run_value(self, key: str) -> Any:
        if key in PAYLOADS:
            _require_in_row(self.run, key, "workflow")
            return getattr(self.run, key)
        run = self.run
        facts = {
            "workflowId": run.pk,
            "workflowType": run.name,
            "version": run.version,
            "status": run.status,
            "correlationId": run.correlation_id or None,
        }
        return facts.get(key, MISSING)

    def _attempt_of(self, ref: str) -> Attempt | None:
        if ref not in self.attempts:
            task = find_task(self.run, ref)
            found = Attempt.objects.filter(pk=task.attempt_id).select_related("task").first() if task else None
            self.attempts[ref] = found
        return self.attempts[ref]


def _require_in_row(row: Run | Attempt, part: str, name: str) -> None:
    if getattr(row, f"{part}_path", ""):
        raise Invalid(f"The {part} of {name} is stored outside the database. An expression here cannot read it.")


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


def run_cause(run: Run, now: int | None = None, shown: str = "") -> Cause:
    """Return why the run has its current status.

    `shown`: a task whose gate verdicts are loaded with those of the cause, which takes fewer queries.
    """
    now = clock.now() if now is None else now
    return _running_cause(run, now, shown) if run.status == RUNNING else CAUSES[run.status](run, now)


def failure_reasons(runs: Iterable[Run]) -> dict[str, tuple[str, str]]:
    """Return the failed task and the informative line of its reason for each failed run, by run id. Runs one query."""
    failed = {run.failed_attempt_id: run.pk for run in runs if run.failed_attempt_id}
    attempts = Attempt.objects.defer_payloads().filter(pk__in=list(failed)).select_related("task") if failed else ()
    return {
        failed[attempt.pk]: (str(attempt.task), informative_line(attempt.reason, 200) or str(NO_REASON))
        for attempt in attempts
    }


def _running_cause(run: Run, now: int, shown: str = "") -> Cause:
    if run.begins_later(now):
        until = {"moment": format_timestamp(run.created_at), "left": format_elapsed(run.created_at - now)}
        return Cause(_("Waiting: scheduled to start at %(moment)s, in %(left)s") % until, is_waiting=True)
    if run.is_held:
        sentence = _("Waiting: workflow concurrency limit reached; the run continues when an earlier run ends")
        return Cause(sentence, is_waiting=True)
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
    verdicts_by_id = verdicts_on_attempts([first] if other is first else [first, other], now)
    verdicts = tuple(verdicts_by_id[first.pk])
    sentence = describe_wait(
        first, attempts_allowed(parsed_definition(run.resolved_definition_id), first.task), verdicts, now
    )
    whole = (_("Waiting: %(what)s") if is_waiting else _("Running: %(what)s")) % {"what": sentence + more}
    return Cause(
        whole,
        str(first.task),
        first.id,
        first.child_id,
        verdicts,
        is_waiting,
        attempts=tuple(attempts),
        shown_attempt_id=other.pk,
        shown_verdicts=tuple(verdicts_by_id[other.pk]),
    )


def _stopped_cause(run: Run, stops: Mapping[str, Mapping[str, Any]], now: int) -> Cause:
    """Return that the run stands at a breakpoint. The gate has the same sentence for the attempt."""
    attempt_id, first = next(iter(stops.items()))
    others = len(stops) - 1
    more = ngettext(" · %(count)s more stopped task", " · %(count)s more stopped tasks", others) % {"count": others}
    sentence = GATE_TEXTS[BREAKPOINT.name].sentence(GateFacts(now, 0, **stop_facts(first))).rstrip(".")
    whole = _("Waiting: `%(task)s` — %(what)s") % {"task": first["task"], "what": sentence[:1].lower() + sentence[1:]}
    attempt = Attempt.objects.defer_payloads().filter(pk=attempt_id).select_related("task").first()
    if attempt is not None:
        attempt.run = run
    verdicts = tuple(verdicts_on(attempt, now)) if attempt is not None else ()
    return Cause(whole + (more if others else ""), first["task"], attempt_id, verdicts=verdicts, is_waiting=True)


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
    attempt = Attempt.objects.defer_payloads().filter(pk=run.failed_attempt_id).select_related("task").first()
    if attempt is None:
        return Cause(without_task % {"reason": informative_line(run.reason) or _("no reason given")})
    return _cause_at(attempt, run, with_task, MAX_DEPTH)


def _cause_at(attempt: Attempt, run: Run, sentence: str, depth: int) -> Cause:
    which = _name_attempt(attempt, attempts_allowed(parsed_definition(run.resolved_definition_id), attempt.task))
    reason = _failure_inside(attempt, depth) or informative_line(attempt.reason) or _("no reason given")
    facts = {"task": attempt.task, "which": which, "reason": reason}
    return Cause(sentence % facts, str(attempt.task), attempt.id, attempt.child_id, attempts=(attempt,))


def _name_attempt(attempt: Attempt, tries: int | None) -> str:
    number = attempt.number + 1
    if not tries:
        return _("attempt %(number)s") % {"number": number}
    # A retry by an operator may exceed the attempts that the policy allows.
    return _("attempt %(number)s of %(tries)s") % {"number": number, "tries": max(tries, number)}


def _failure_inside(attempt: Attempt, depth: int) -> str:
    """Return where the sub-workflow of an attempt failed, or an empty text if no child run failed. Runs one query."""
    if not attempt.child_id or not depth:
        return ""
    child = Run.objects.defer_payloads().filter(pk=attempt.child_id)
    failed = Attempt.objects.defer_payloads().filter(
        pk__in=child.exclude(failed_attempt_id="").values("failed_attempt_id")
    )
    payloads = [f"run__{name}" for name in ("input", "output", "variables")]
    inner = failed.select_related("task", "run").defer("input", "output", "task__step_state", *payloads).first()
    if inner is None or inner.run is None:
        return ""
    return _cause_at(
        inner, inner.run, _("sub-workflow failed at `%(task)s`, %(which)s: %(reason)s"), depth - 1
    ).sentence


def _terminated_cause(run: Run, now: int) -> Cause:
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
    took = format_duration((run.ended_at or now) - run.created_at)
    return Cause(_add_reason(_("Completed in %(took)s") % {"took": took}, run.reason))


CAUSES = {
    PAUSED: _paused_cause,
    FAILED: _failed_cause,
    TIMED_OUT: _timed_out_cause,
    TERMINATED: _terminated_cause,
    COMPLETED: _completed_cause,
}
