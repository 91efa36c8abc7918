"""What an open attempt waits for: one answer, as a sentence about its run and in a few words for lists.

Runs, their lists and timelines, queues, the overview, the API and MCP show this answer. The conditions of the gates are
in `tasks/gates.py`, what operators read about them in `gate_sentences.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.breakpoints import stops_of
from ...core.failure_grouping import informative_line
from ...core.snapshot import NEVER
from ...core.step_types.forks import ExclusiveJoin, Join
from ...core.step_types.loops import DoWhile, ForEach, ForEachItem
from ...core.step_types.sub_workflows import SubWorkflow
from ...core.step_types.try_catch import TryCatch
from ...core.step_types.waiting import Human, PullWorkflowMessages, Wait, WaitForWebhook, Yield
from ...runs.models import Attempt, Run
from ...runs.timeline.tree import CONTAINER_STEP_TYPES
from ...utils import process_state
from ...utils.formatting import LazyText, format_duration, format_near_time
from ...utils.process_state import Wiring
from ..gates import DELAYING_GATES, GATES, GateFacts, stop_facts
from .gate_sentences import GATE_TEXTS
from .waiting import WaitFacts, polling_verdict

DUE = "due"
"""The gate of attempts with a delay. The reason tells apart why an attempt is delayed."""
PERSONS: Wiring[Callable[[Sequence[Attempt], int], Mapping[str, str]] | None] = process_state.wiring(None)
"""Returns for whom open human tasks wait, by attempt id. The slice of human tasks connects it."""


@dataclass(frozen=True, slots=True)
class WaitReason:
    """What an open attempt waits for.

    `kind`: the name of the gate that is closed; `polled` without a worker; `queued` if only its turn is missing;
    `worker` while a worker has it; `engine` for a step without a queue. `since`: the start of that state in epoch
    milliseconds; None if the words name a time.
    """

    kind: str
    sentence: str
    brief: str
    since: int | None


def interest_sort_key(attempt: Attempt) -> tuple[int, int]:
    """Return a sort key that puts queued attempts first and attempts that wait for other tasks last."""
    if attempt.task.type in CONTAINER_STEP_TYPES:
        return 3, attempt.seq
    return {"PENDING": 0}.get(attempt.status, 1 if attempt.queue == "" else 2), attempt.seq


def persons_of(attempts: Sequence[Attempt], now: int) -> Mapping[str, str]:
    """Return for whom those of the attempts wait that are human tasks, by attempt id. Runs one query, or none."""
    human = [each for each in attempts if each.task.type == Human.type]
    return find(human, now) if human and (find := PERSONS.value) is not None else {}


def wait_reason(
    attempt: Attempt, facts: WaitFacts | None, now: int, *, tries: int | None = None, person: str = ""
) -> WaitReason:
    """Return what an open attempt waits for. The attempt is loaded with its task and run.

    `facts`: of an attempt in a queue. `tries`: the number of attempts that its policy allows, if known. `person`: for
    whom it waits, if it is a human task.
    """
    if attempt.status == "PENDING" and facts is not None:
        return _reason_in_queue(attempt, facts, tries, now)
    if attempt.queue:
        worker = _("on %(worker)s") % {"worker": attempt.worker} if attempt.worker else _("in progress")
        return WaitReason("worker", _describe_work(attempt, now), worker, attempt.claimed_at or attempt.started_at)
    describe = ENGINE_WAITS.get(attempt.task.type, _describe_unknown)
    sentence, brief = describe(attempt, now)
    ends = attempt.task.type == Wait.type and attempt.ends_at < NEVER
    if person:
        sentence, brief = f"{sentence}, {person}", f"{brief}, {person}"
    return WaitReason("engine", sentence, brief, None if ends else attempt.scheduled_at)


def brief_delay(attempt: Attempt, run: Run, now: int) -> str:
    """Return in a few words why an attempt in a queue of the run is not due, or an empty text if it is due."""
    if attempt.visible_at <= now:
        return ""
    stop = stop_facts(stops_of(run.debug or {}).get(attempt.pk))
    gates = GateFacts(now, attempt.visible_at, is_run_held=run.is_held, **stop)
    closed = next((gate.name for gate in DELAYING_GATES if not gate.lets_pass(gates)), DUE)
    return GATE_TEXTS[closed].brief(gates) if closed != DUE else _describe_delay(attempt, None, now)[1]


def _reason_in_queue(attempt: Attempt, facts: WaitFacts, tries: int | None, now: int) -> WaitReason:
    closed = next((gate.name for gate in GATES if not gate.lets_pass(facts.gates)), "")
    since = None if attempt.visible_at > now else attempt.pending_since
    if closed == DUE:
        return WaitReason(DUE, *_describe_delay(attempt, tries, now), since)
    if closed:
        texts = GATE_TEXTS[closed]
        return WaitReason(closed, _with_task(attempt, texts.sentence(facts.gates)), texts.brief(facts.gates), since)
    polled = polling_verdict(attempt, now, facts.polls)
    if not polled.is_open:
        brief = _("only draining workers") if facts.polls.are_recent(now) else _("no workers")
        return WaitReason(polled.gate, _with_task(attempt, polled.sentence), brief, since)
    names: dict[str, Any] = {"queue": attempt.queue, "span": format_duration(now - attempt.pending_since)}
    sentence = _("queued in `%(queue)s` for %(span)s")
    if facts.same_key_ahead:
        names |= {"count": f"{facts.same_key_ahead:,}", "key": attempt.fairness_key}
        sentence = ngettext(
            "queued in `%(queue)s` for %(span)s, behind %(count)s task of fairness key `%(key)s`",
            "queued in `%(queue)s` for %(span)s, behind %(count)s tasks of fairness key `%(key)s`",
            facts.same_key_ahead,
        )
    return WaitReason("queued", _with_task(attempt, sentence % names), _("queued"), since)


def _with_task(attempt: Attempt, sentence: str) -> str:
    sentence = sentence.rstrip(".")
    return f"`{attempt.task}` — {sentence[:1].lower()}{sentence[1:]}"


def _describe_delay(attempt: Attempt, tries: int | None, now: int) -> tuple[str, str]:
    """Return why an attempt is delayed, as a sentence and in a few words."""
    facts = {"task": attempt.task, "left": format_duration(attempt.visible_at - now), "number": attempt.number + 1}
    if attempt.poll_count:
        sentence = _("`%(task)s` was returned to its queue by its worker and is due in %(left)s")
        return sentence % facts, _("returned, due in %(left)s") % facts
    if not attempt.number:
        return _("`%(task)s` starts in %(left)s") % facts, _("due in %(left)s") % facts
    which = (_("(attempt %(number)s of %(tries)s)") if tries else _("(attempt %(number)s)")) % {**facts, "tries": tries}
    error = _("; previous error: %(reason)s") % {"reason": informative_line(attempt.reason)} if attempt.reason else ""
    sentence = _("retry of `%(task)s` in %(left)s") % facts
    return f"{sentence} {which}{error}", _("attempt %(number)s in %(left)s") % facts


def _describe_work(attempt: Attempt, now: int) -> str:
    facts = {"task": attempt.task, "worker": attempt.worker}
    facts["span"] = format_duration(now - (attempt.claimed_at or attempt.started_at or now))
    left = (attempt.lease_ends_at or 0) - now
    lease = _("; lease expires in %(left)s") % {"left": format_duration(left)} if left > 0 else ""
    if attempt.worker:
        return _("`%(task)s` on worker `%(worker)s` for %(span)s") % facts + lease
    return _("`%(task)s` on an unknown worker for %(span)s") % facts + lease


def _describe_unknown(attempt: Attempt, now: int) -> tuple[str, str]:
    return _("`%(task)s` (%(type)s) is waiting") % {"task": attempt.task, "type": attempt.task.type}, _("waiting")


def _describe_timer(attempt: Attempt, now: int) -> tuple[str, str]:
    facts: dict[str, Any] = {"task": attempt.task}
    if attempt.ends_at == NEVER:
        return _("`%(task)s` is waiting to be completed through the API") % facts, _("waiting for the API")
    facts |= {"until": format_near_time(attempt.ends_at, now), "left": format_duration(attempt.ends_at - now)}
    if attempt.ends_at <= now:
        return _("`%(task)s` is waiting, its time has come") % facts, _("time has come")
    return (
        _("`%(task)s` is waiting until %(until)s, %(left)s left") % facts,
        _("until %(until)s, %(left)s left") % facts,
    )


def _engine_wait(sentence: str | LazyText, brief: str | LazyText) -> Callable[[Attempt, int], tuple[str, str]]:
    def describe(attempt: Attempt, now: int) -> tuple[str, str]:
        span = format_duration(now - attempt.scheduled_at)
        facts = {"task": attempt.task, "iteration": attempt.task.iteration, "span": span}
        return sentence % facts, brief % facts

    return describe


def _describe_phase(attempt: Attempt, now: int) -> tuple[str, str]:
    facts = PHASES.get(attempt.task.iteration, gettext_lazy("`%(task)s` is waiting for the tasks of its body"))
    return facts % {"task": attempt.task}, _("waiting")


PHASES = {
    2: gettext_lazy("`%(task)s` is waiting for its error handler"),
    3: gettext_lazy("`%(task)s` is waiting for its `finallyTasks`"),
}


ENGINE_WAITS: dict[str, Callable[[Attempt, int], tuple[str, str]]] = {
    Human.type: _engine_wait(gettext_lazy("human task `%(task)s` pending for %(span)s"), gettext_lazy("human task")),
    Wait.type: _describe_timer,
    Yield.type: _engine_wait(
        gettext_lazy("`%(task)s` has been waiting for a signal for %(span)s"), gettext_lazy("waiting for a signal")
    ),
    WaitForWebhook.type: _engine_wait(
        gettext_lazy("`%(task)s` has been waiting for a webhook event for %(span)s"),
        gettext_lazy("waiting for a webhook"),
    ),
    PullWorkflowMessages.type: _engine_wait(
        gettext_lazy("`%(task)s` is waiting for a workflow message"), gettext_lazy("waiting for a message")
    ),
    SubWorkflow.type: _engine_wait(
        gettext_lazy("`%(task)s` is waiting for its sub-workflow"), gettext_lazy("sub-workflow")
    ),
    Join.type: _engine_wait(gettext_lazy("`%(task)s` is waiting for its branches"), gettext_lazy("waiting")),
    ExclusiveJoin.type: _engine_wait(
        gettext_lazy("`%(task)s` is waiting for the first of its branches"), gettext_lazy("waiting")
    ),
    DoWhile.type: _engine_wait(
        gettext_lazy("`%(task)s` is in iteration %(iteration)s"), gettext_lazy("iteration %(iteration)s")
    ),
    ForEach.type: _engine_wait(
        gettext_lazy("`%(task)s` is waiting for its items, %(iteration)s started"), gettext_lazy("waiting")
    ),
    ForEachItem.type: _engine_wait(
        gettext_lazy("`%(task)s` is waiting for the tasks of its item"), gettext_lazy("waiting")
    ),
    TryCatch.type: _describe_phase,
}
