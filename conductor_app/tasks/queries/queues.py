"""One-sentence descriptions of what an open attempt is waiting for."""

from collections.abc import Callable, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.informative_lines import informative_line
from ...core.snapshot import NEVER
from ...core.step_structure import types_where
from ...core.step_types.do_while import DoWhile
from ...core.step_types.exclusive_join import ExclusiveJoin
from ...core.step_types.for_each import ForEach
from ...core.step_types.for_each_item import ForEachItem
from ...core.step_types.human import Human
from ...core.step_types.join import Join
from ...core.step_types.pull_workflow_messages import PullWorkflowMessages
from ...core.step_types.sub_workflow import SubWorkflow
from ...core.step_types.try_catch import TryCatch
from ...core.step_types.wait import Wait
from ...core.step_types.wait_for_webhook import WaitForWebhook
from ...core.step_types.yield_ import Yield
from ...models import Attempt
from ...models.gates import BUDGET
from ..durations import format_duration
from ..queues.gate_verdicts import GateVerdict, closed_gates

CONTAINER_STEP_TYPES = types_where("waits_for_tasks") | types_where("forks")
"""Step types that only wait for other tasks of the same run. Those other tasks explain the wait better."""


def interest_sort_key(attempt: Attempt) -> tuple[int, int]:
    """Return a sort key that puts queued attempts first and attempts that wait for other tasks last."""
    if attempt.task.type in CONTAINER_STEP_TYPES:
        return 3, attempt.seq
    return {"PENDING": 0}.get(attempt.status, 1 if attempt.queue == "" else 2), attempt.seq


def describe_wait(attempt: Attempt, tries: int | None, verdicts: Sequence[GateVerdict], now: int) -> str:
    """Return what an open attempt is waiting for, as one sentence.

    `attempt` is loaded with its task and run. `tries`: the number of attempts its policy allows, if known.
    """
    if attempt.status == "PENDING" and attempt.visible_at == NEVER and attempt.run and attempt.run.debug:
        return _("`%(task)s` is stopped at a breakpoint before it") % {"task": attempt.task}
    if attempt.status == "PENDING":
        return _describe_pending(attempt, tries, verdicts, now)
    if attempt.queue:
        return _describe_leased(attempt, now)
    return _describe_engine_wait(attempt, now)


def _describe_pending(attempt: Attempt, tries: int | None, verdicts: Sequence[GateVerdict], now: int) -> str:
    if any(verdict.gate == BUDGET.name and not verdict.is_open for verdict in verdicts):
        return f"`{attempt.task}` — {_describe_obstacle(attempt, verdicts, now)}"
    facts = {"task": attempt.task, "left": format_duration(attempt.visible_at - now)}
    delayed = attempt.visible_at > now
    if delayed and attempt.poll_count == 0 and attempt.number > 0:
        return (
            (_("retry of `%(task)s` in %(left)s") % facts) + _name_attempt(attempt, tries) + _previous_reason(attempt)
        )
    if delayed and attempt.poll_count > 0:
        return _("`%(task)s` was returned to its queue by its worker and is due in %(left)s") % facts
    if delayed:
        return _("`%(task)s` starts in %(left)s") % facts
    return f"`{attempt.task}` — {_describe_obstacle(attempt, verdicts, now)}"


def _name_attempt(attempt: Attempt, tries: int | None) -> str:
    facts = {"number": attempt.number + 1, "tries": tries}
    return " " + (_("(attempt %(number)s of %(tries)s)") if tries else _("(attempt %(number)s)")) % facts


def _previous_reason(attempt: Attempt) -> str:
    return _("; previous error: %(reason)s") % {"reason": informative_line(attempt.reason)} if attempt.reason else ""


def _describe_obstacle(attempt: Attempt, verdicts: Sequence[GateVerdict], now: int) -> str:
    obstacles = closed_gates(verdicts)
    if obstacles:
        sentence = obstacles[0].sentence.rstrip(".")
        return sentence[:1].lower() + sentence[1:]
    facts = {"queue": attempt.queue, "span": format_duration(now - attempt.pending_since)}
    return _("queued in `%(queue)s` for %(span)s") % facts


def _describe_leased(attempt: Attempt, now: int) -> str:
    facts = {"task": attempt.task, "worker": attempt.worker}
    facts["span"] = format_duration(now - (attempt.claimed_at or attempt.started_at or now))
    left = (attempt.lease_ends_at or 0) - now
    lease = _("; lease expires in %(left)s") % {"left": format_duration(left)} if left > 0 else ""
    if attempt.worker:
        return _("`%(task)s` on worker `%(worker)s` for %(span)s") % facts + lease
    return _("`%(task)s` on an unknown worker for %(span)s") % facts + lease


def _describe_engine_wait(attempt: Attempt, now: int) -> str:
    describe = ENGINE_WAITS.get(attempt.task.type)
    if describe is not None:
        return describe(attempt, now)
    return _("`%(task)s` (%(type)s) is waiting") % {"task": attempt.task, "type": attempt.task.type}


def _describe_timer(attempt: Attempt, now: int) -> str:
    if attempt.ends_at == NEVER:
        return _("`%(task)s` is waiting to be completed through the API") % {"task": attempt.task}
    return _("`%(task)s` is waiting, %(left)s left") % {
        "task": attempt.task,
        "left": format_duration(attempt.ends_at - now),
    }


def _sentence(sentence: Any) -> Callable[[Attempt, int], str]:
    def describe(attempt: Attempt, now: int) -> str:
        task = attempt.task
        span = format_duration(now - attempt.scheduled_at)
        return sentence % {"task": task, "iteration": task.iteration, "span": span}

    return describe


def _describe_phase(attempt: Attempt, now: int) -> str:
    facts = PHASES.get(attempt.task.iteration, gettext_lazy("`%(task)s` is waiting for the tasks of its body"))
    return facts % {"task": attempt.task}


PHASES = {
    2: gettext_lazy("`%(task)s` is waiting for its error handler"),
    3: gettext_lazy("`%(task)s` is waiting for its `finallyTasks`"),
}


ENGINE_WAITS: dict[str, Callable[[Attempt, int], str]] = {
    Human.type: _sentence(gettext_lazy("human task `%(task)s` pending for %(span)s")),
    Wait.type: _describe_timer,
    Yield.type: _sentence(gettext_lazy("`%(task)s` has been waiting for a signal for %(span)s")),
    WaitForWebhook.type: _sentence(gettext_lazy("`%(task)s` has been waiting for a webhook event for %(span)s")),
    PullWorkflowMessages.type: _sentence(gettext_lazy("`%(task)s` is waiting for a workflow message")),
    SubWorkflow.type: _sentence(gettext_lazy("`%(task)s` is waiting for its sub-workflow")),
    Join.type: _sentence(gettext_lazy("`%(task)s` is waiting for its branches")),
    ExclusiveJoin.type: _sentence(gettext_lazy("`%(task)s` is waiting for the first of its branches")),
    DoWhile.type: _sentence(gettext_lazy("`%(task)s` is in iteration %(iteration)s")),
    ForEach.type: _sentence(gettext_lazy("`%(task)s` is waiting for its items, %(iteration)s started")),
    ForEachItem.type: _sentence(gettext_lazy("`%(task)s` is waiting for the tasks of its item")),
    TryCatch.type: _describe_phase,
}
