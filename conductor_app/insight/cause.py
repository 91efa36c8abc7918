"""The cause line: why a run is where it is, in one sentence. Names stand between backticks."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from .. import clock
from ..core.states import COMPLETED, FAILED, PAUSED, RUNNING, TERMINATED, TIMED_OUT
from ..models import Attempt, Run
from .attempt_waits import describe_wait, first_line, interest_sort_key
from .durations import format_duration, format_elapsed, format_timestamp
from .gate_verdicts import GateVerdict, verdicts_on
from .last_transition import last_transition
from .parsed_definitions import attempts_allowed, parsed_definition

MAX_DEPTH = 3
"""How many sub-workflows are followed down to the first failure."""
NO_REASON = "no reason was given"
"""What lists and exports say; sentences say it in the reader's language."""
MOST_READ = 200
"""How many open attempts are looked at to choose the one that is named."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The sentence, what it speaks of, and for a pending attempt the verdicts that were asked for it."""

    sentence: str
    task: str = ""
    attempt_id: str = ""
    child_id: str = ""
    verdicts: tuple[GateVerdict, ...] = ()
    is_waiting: bool = False
    """Whether nobody works on what it speaks of."""


def run_cause(run: Run, now: int | None = None) -> Cause:
    """Why the run is where it is."""
    return CAUSES[run.status](run, clock.now() if now is None else now)


def failure_reasons(runs: Iterable[Run]) -> dict[str, tuple[str, str]]:
    """Of runs that failed: by run id, the task that failed and the first line of the reason, read together."""
    failed = {run.failed_attempt_id: run.pk for run in runs if run.failed_attempt_id}
    attempts = Attempt.objects.defer_payloads().filter(pk__in=list(failed)).select_related("task") if failed else ()
    return {
        failed[attempt.pk]: (str(attempt.task), first_line(attempt.reason, 200) or str(NO_REASON))
        for attempt in attempts
    }


def _running_cause(run: Run, now: int) -> Cause:
    if run.begins_later(now):
        until = {"moment": format_timestamp(run.created_at), "left": format_elapsed(run.created_at - now)}
        return Cause(_("Waiting: its start is asked for at %(moment)s, in %(left)s") % until, is_waiting=True)
    if run.is_held:
        said = _("Waiting: the workflow's limit of runs at a time is reached; an earlier run has to end first")
        return Cause(said, is_waiting=True)
    attempts = sorted(_open_attempts(run), key=interest_sort_key)
    if not attempts:
        return Cause(_("Waiting: the engine is about to decide what comes next"), is_waiting=True)
    first, others = attempts[0], len(attempts) - 1
    is_waiting = not (first.status == "LEASED" and first.queue)
    others_open = ngettext("; %(count)s more task is open", "; %(count)s more tasks are open", others)
    more = others_open % {"count": others} if others else ""
    verdicts = tuple(verdicts_on(first, now))
    sentence = describe_wait(first, attempts_allowed(parsed_definition(run.plan_id), first.task), verdicts, now)
    whole = (_("Waiting: %(what)s") if is_waiting else _("Running: %(what)s")) % {"what": sentence + more}
    return Cause(whole, str(first.task), first.id, first.child_id, verdicts, is_waiting)


def _open_attempts(run: Run) -> list[Attempt]:
    found = (
        Attempt.objects.defer_payloads().open().filter(run_id=run.pk).select_related("task").order_by("seq")[:MOST_READ]
    )
    for attempt in found:
        attempt.run = run
    return list(found)


def _failed_cause(run: Run, now: int) -> Cause:
    return _failure_cause(run, now, _("Failed: %(reason)s"), _("Failed at `%(task)s`, %(which)s: %(reason)s"))


def _timed_out_cause(run: Run, now: int) -> Cause:
    return _failure_cause(run, now, _("Timed out: %(reason)s"), _("Timed out at `%(task)s`, %(which)s: %(reason)s"))


def _failure_cause(run: Run, now: int, without_task: str, with_task: str, depth: int = MAX_DEPTH) -> Cause:
    """Return `with_task` if the failed task is known, otherwise `without_task` with the run's reason."""
    attempt = Attempt.objects.defer_payloads().filter(pk=run.failed_attempt_id).select_related("task").first()
    if attempt is None:
        return Cause(without_task % {"reason": first_line(run.reason) or _("no reason was given")})
    which = _name_attempt(attempt, attempts_allowed(parsed_definition(run.plan_id), attempt.task))
    reason = _failure_inside(attempt, now, depth) or first_line(attempt.reason) or _("no reason was given")
    sentence = with_task % {"task": attempt.task, "which": which, "reason": reason}
    return Cause(sentence, str(attempt.task), attempt.id, attempt.child_id)


def _name_attempt(attempt: Attempt, tries: int | None) -> str:
    number = attempt.number + 1
    if not tries:
        return _("attempt %(number)s") % {"number": number}
    # An operator's retry goes beyond what the policy allows.
    return _("attempt %(number)s of %(tries)s") % {"number": number, "tries": max(tries, number)}


def _failure_inside(attempt: Attempt, now: int, depth: int) -> str:
    """Where its sub-workflow failed, if that is why it did."""
    child = Run.objects.defer_payloads().filter(pk=attempt.child_id).first() if attempt.child_id and depth else None
    if child is None or not child.failed_attempt_id:
        return ""
    without_task = _("its sub-workflow failed: %(reason)s")
    with_task = _("its sub-workflow failed at `%(task)s`, %(which)s: %(reason)s")
    return _failure_cause(child, now, without_task, with_task, depth - 1).sentence


def _terminated_cause(run: Run, now: int) -> Cause:
    entry = last_transition(run.pk, "terminate")
    said = {"by": entry.by if entry else "", "passed": format_elapsed(now - (run.ended_at or now))}
    sentence = _("Terminated by %(by)s %(passed)s ago") if said["by"] else _("Terminated %(passed)s ago")
    return Cause(_add_reason(sentence % said, run.reason))


def _paused_cause(run: Run, now: int) -> Cause:
    out = Attempt.objects.filter(run_id=run.pk, status="LEASED").exclude(queue="").count()
    with_workers = ngettext("; %(count)s task is still with workers", "; %(count)s tasks are still with workers", out)
    entry = last_transition(run.pk, "pause")
    said = {"by": entry.by, "passed": format_elapsed(now - entry.at)} if entry else {}
    if said.get("by"):
        sentence = _("Paused by %(by)s %(passed)s ago") % said
    else:
        sentence = _("Paused %(passed)s ago") % said if said else _("Paused")
    sentence = _add_reason(sentence, entry.reason if entry else "")
    return Cause(sentence + (with_workers % {"count": out} if out else ""))


def _add_reason(sentence: str, reason: str) -> str:
    return f"{sentence}: {first_line(reason)}" if reason else sentence


def _completed_cause(run: Run, now: int) -> Cause:
    took = format_duration((run.ended_at or now) - run.created_at)
    return Cause(_add_reason(_("Completed in %(took)s") % {"took": took}, run.reason))


CAUSES = {
    RUNNING: _running_cause,
    PAUSED: _paused_cause,
    FAILED: _failed_cause,
    TIMED_OUT: _timed_out_cause,
    TERMINATED: _terminated_cause,
    COMPLETED: _completed_cause,
}
