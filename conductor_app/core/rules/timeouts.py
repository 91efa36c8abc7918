"""Rules for expired timers of `core/timers.py`: what the policy of a task or the limit of a run demands."""

from collections.abc import Iterator
from typing import Any

from ..decision_context import DecisionContext
from ..definition import ALERT_ONLY, RETRY
from ..effects import Effect, ResolveTask, SendMessage, TransitionAttempt, UpdateTask
from ..primitives import fast_replace
from ..snapshot import Run, Task
from ..states import PAUSED, PENDING
from ..timers import Timer, is_due, next_timer, run_ends_at, timers_of
from .finish import end_run, has_failure_handler

SENTENCES = {
    "total": "Total timeout of {seconds} s for all attempts exceeded. Task: {task}, Task Definition: {name}",
    "task": "Task timed out after {seconds} s. Timeout configured as {seconds} s. Policy: {policy}. Task: {task}, "
    "Task Definition: {name}",
    "poll": "Task poll timed out after {seconds} s: no worker polled it. Timeout configured as {seconds} s. "
    "Policy: {policy}. Task: {task}, Task Definition: {name}",
    "response": "responseTimeout: {seconds} exceeded for the taskId: {task} with Task Definition: {name}",
}


def time_out(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects of expired timers, as the policies define them (execution §4)."""
    if run_ends_at(run) <= now:
        yield from end_run(run, ctx, now, "time_out", _run_sentence(run, now))
        return
    due = [(task, _expired_timer(task, now)) for task in run.tasks.values() if is_due(task, now)]
    if expired := next(((task, timer) for task, timer in due if timer and ends_run(run, task, timer)), None):
        # Its other due attempts are canceled with the run, so they cannot time out as well.
        yield from _end_run(run, ctx, *expired, now)
        return
    for task, timer in due:
        if timer is not None:
            yield from _timeout_effects(task, timer, now)
        elif task.attempt.ends_at > now or run.status == PAUSED:
            # A paused run starts or finishes such tasks when it is resumed.
            yield UpdateTask(task.key, attempt_facts={"due_at": next_timer(task.step.policy, task.attempt, now)})


def _expired_timer(task: Task, now: int) -> Timer | None:
    """Return the timer that expires the attempt. In a policy that only alerts, an expired lease comes first."""
    passed = [timer for timer in timers_of(task.step.policy, task.attempt) if timer.at <= now]
    if task.step.policy.timeout_policy == ALERT_ONLY:
        passed.sort(key=lambda timer: timer.name != "response")
    return passed[0] if passed else None


def ends_run(run: Run, task: Task, timer: Timer) -> bool:
    return _ends_task(task, timer) and not has_failure_handler(run, task)


def _ends_task(task: Task, timer: Timer) -> bool:
    """Return True if this timer ends the task even if attempts are left."""
    return timer.name != "response" and task.step.policy.timeout_policy not in (RETRY, ALERT_ONLY)


def _end_run(run: Run, ctx: DecisionContext, task: Task, timer: Timer, now: int) -> Iterator[Effect]:
    why = _timeout_sentence(task, timer)
    yield from _expire_attempt(task, now, why)
    reason = f"Task {task.attempt.id} failed with status: TIMED_OUT and reason: '{why}'"
    yield from end_run(run, ctx, now, "time_out", reason, failed=task, spared=task.key)


def _timeout_effects(task: Task, timer: Timer, now: int) -> Iterator[Effect]:
    policy = task.step.policy
    if timer.name == "response" and policy.requeues_on_lost_lease:
        yield return_to_queue(task, 0, {"worker": ""}, now)
        return
    if timer.name != "response" and policy.timeout_policy == ALERT_ONLY:
        due = max(next_timer(policy, task.attempt, now), now + 1)
        yield UpdateTask(task.key, attempt_facts={"due_at": due, "reason": _timeout_sentence(task, timer)})
        return
    yield from _expire_attempt(task, now, _timeout_sentence(task, timer))
    if _ends_task(task, timer):
        yield ResolveTask(task.key, "time_out")


def return_to_queue(task: Task, callback_seconds: int, facts: dict[str, Any], now: int) -> TransitionAttempt:
    """Return the effect that releases the attempt: it waits in its queue again, under its number (execution §4.3)."""
    wait_ms = max(callback_seconds, 0) * 1000
    facts = {**facts, "visible_at": now + wait_ms, "pending_since": now, "callback_ms": wait_ms, "lease_ends_at": None}
    after = fast_replace(task.attempt, status=PENDING, **facts)
    return TransitionAttempt(task.key, "hand_back", now, {**facts, "due_at": next_timer(task.step.policy, after, now)})


def _expire_attempt(task: Task, now: int, reason: str) -> Iterator[Effect]:
    """Expire an attempt, and terminate the child run that it waits for (execution §11 row 38)."""
    yield TransitionAttempt(task.key, "expire", now, {"reason": reason})
    if task.attempt.child_id:
        yield SendMessage(task.attempt.child_id, "terminate", {"reason": f"The parent's task timed out: {reason}"})


def _timeout_sentence(task: Task, timer: Timer) -> str:
    """Return why the attempt timed out."""
    policy = task.step.policy
    return SENTENCES[timer.name].format(
        seconds=timer.seconds, task=task.attempt.id, policy=policy.timeout_policy, name=policy.name or task.step.name
    )


def _run_sentence(run: Run, now: int) -> str:
    elapsed = (now - max(run.last_retried_at, run.created_at)) // 1000
    return (
        f"Workflow timed out after {elapsed} seconds. Timeout configured as {run.definition.timeout_seconds} seconds. "
        "Timeout policy configured to TIME_OUT_WF"
    )
