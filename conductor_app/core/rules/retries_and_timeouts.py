"""The rules that the policy of a task decides: whether a failed task is tried again, and what an expired timer demands.

The delay of a retry (execution §3.1) is `delay_seconds` (fixed, linear or exponential, with its maximum) plus
`jitter_ms`, by the tries of the task since its last rerun. `core/step_types/base.py:new_attempt` makes the attempt
visible to workers after it: until then, the gate `due` of `tasks/gates.py` is closed. A task without a queue has the
delay as a timer.

The timers are those of `core/timers.py`. The limit of a run has one, too.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..decision_context import DecisionContext, conductor_task_type
from ..definition import ALERT_ONLY, EXPONENTIAL, LINEAR, RETRY, Policy
from ..effects import Effect, OpenAttempt, ResolveTask, SendMessage, TransitionAttempt, UpdateTask
from ..errors import StepRefused
from ..primitives import fast_replace, stable_fraction
from ..secret_places import SECRET_PLACES, find_places, kept_places, merge_places, places_of
from ..snapshot import FORMER_WORKERS, NEVER, UNKNOWN, Attempt, Run, Task
from ..states import CANCELED, EXPIRED, FAILED, PAUSED, PENDING
from ..step_types import step_type_of
from ..step_types.base import attempt_id, new_attempt, require_named_objects
from ..timers import Timer, is_due, next_timer, run_ends_at, timers_of
from .finish import end_run, has_failure_handler

MAX_SECONDS = 2**31 - 1
FINAL_EVENTS = {EXPIRED: "time_out", CANCELED: "cancel"}
"""Event that resolves a task, by the status of its last attempt; `fail` for any other failure."""
SENTENCES = {
    "total": "Total timeout of {seconds} s for all attempts exceeded. Task: {task}, Task Definition: {name}",
    "task": "Task timed out after {seconds} s. Timeout configured as {seconds} s. Policy: {policy}. Task: {task}, "
    "Task Definition: {name}",
    "poll": "Task poll timed out after {seconds} s: no worker polled it. Timeout configured as {seconds} s. "
    "Policy: {policy}. Task: {task}, Task Definition: {name}",
    "response": "responseTimeout: {seconds} exceeded for the taskId: {task} with Task Definition: {name}",
}


def retry(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Retry each failed attempt while its policy allows; resolve its task otherwise."""
    for task in run.open_tasks:
        if task.attempt.ended_badly and not task.is_stopped:
            yield schedule_retry(task, ctx, now) if _may_be_retried(task, now) else give_up(task)


def _may_be_retried(task: Task, now: int) -> bool:
    """Return True if the policy allows another attempt (execution §3)."""
    attempt = task.attempt
    return (
        attempt.status in (FAILED, EXPIRED)
        and step_type_of(task.step.type).is_retried
        and task.tries < task.step.policy.retries
        and (attempt.total_ends_at == NEVER or now < attempt.total_ends_at)
    )


def schedule_retry(task: Task, ctx: DecisionContext, now: int) -> OpenAttempt:
    """Return the next attempt, visible after the delay of the policy."""
    policy = task.step.policy
    delay = delay_seconds(policy, task.tries)
    jitter = jitter_ms(policy, stable_fraction(ctx.run.id, task.attempt.id))
    return open_attempt(task, next_attempt(task, ctx, now, delay, jitter), ctx)


def delay_seconds(policy: Policy, failed_number: int) -> int:
    """Return the seconds to wait after attempt `failed_number` (0 is the first) failed, without jitter."""
    delay = _uncapped_delay(policy, failed_number)
    if policy.max_delay_seconds > 0:
        delay = min(delay, policy.max_delay_seconds)
    return min(delay, MAX_SECONDS)


def _uncapped_delay(policy: Policy, number: int) -> int:
    if policy.logic == LINEAR:
        return policy.delay_seconds * policy.scale * (number + 1)
    if policy.logic == EXPONENTIAL and policy.scale > 1:
        # This is the documented formula. Conductor's server doubles the delay, ignoring the factor.
        return policy.delay_seconds * policy.scale ** min(number + 1, 64)
    if policy.logic == EXPONENTIAL:
        return policy.delay_seconds * 2 ** min(number, 64)
    return policy.delay_seconds


def jitter_ms(policy: Policy, share: float) -> int:
    """Return the milliseconds to add to the delay. `share`: a number in [0, 1), the same for an attempt."""
    return int(share * (policy.jitter_ms + 1)) if policy.jitter_ms > 0 else 0


def open_attempt(task: Task, attempt: Attempt, ctx: DecisionContext) -> OpenAttempt:
    """Return the effect that opens the next attempt of a task, with the places of the secrets in its input."""
    if not task.step.secrets or not attempt.queue or ctx.input_override(task.key) is not None:
        return OpenAttempt(task.key, attempt)
    before = ctx.attempt_payload(task, "input")
    fresh = find_places(task.step, attempt.input, ctx.at(task.step, task.key, task), attempt.id)
    kept = kept_places(places_of(task, before), before, attempt.input)
    return OpenAttempt(task.key, attempt, {SECRET_PLACES: merge_places(fresh, kept)})


def next_attempt(
    task: Task, ctx: DecisionContext, now: int, delay: int, jitter: int = 0, first_at: int | None = None, id: str = ""
) -> Attempt:
    """Return an attempt like the last one, with its inputs evaluated again over the old ones (execution §3.2).

    `delay`: in seconds; `jitter`: in milliseconds. `first_at`: start of the total time of all attempts, None to
    keep it. `id`: id of the attempt, "" for a new one.
    """
    last, kind = task.attempt, step_type_of(task.step.type)
    id = id or attempt_id(ctx.run, task.key, last.number + 1, now, task.seq)
    # Some step types execute part of their tasks themselves. If the last attempt had no queue, the next has none.
    is_queued = bool(kind.is_queued and last.queue)
    inputs = _evaluate_inputs(task, ctx, id) if is_queued else UNKNOWN
    if is_queued and not _may_use(task, inputs, ctx):
        # The engine enters the step again, which fails with the reason.
        is_queued, inputs = False, UNKNOWN
    attempt = new_attempt(
        task.step,
        task.key,
        ctx.run,
        now,
        number=last.number + 1,
        status=PENDING,
        first_at=_total_began_at(task) if first_at is None else first_at,
        delay_seconds=delay,
        jitter_ms=jitter,
        queue=last.queue if is_queued else "",
        domain=last.domain,
        previous_id=last.id,
        reason=last.reason,
        input=inputs,
        output={},
        id=id,
    )
    if is_queued:
        return attempt
    # The engine executes the attempt itself when its delay has passed, so the delay is one of its timers.
    return fast_replace(attempt, input={}, due_at=min(attempt.due_at, attempt.visible_at), ends_at=last.ends_at)


def reopen_attempt(task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Open the task's canceled attempt again under its id, with the next number (execution §7.6).

    Its former workers are recorded: their late reports name the same attempt and must be refused.
    """
    last = task.attempt
    again = next_attempt(task, ctx, now, delay=0, first_at=now, id=last.id)
    if task.all_workers:
        yield UpdateTask(
            task.key, {"step_state": {**task.step_state, FORMER_WORKERS: {last.id: list(task.all_workers)}}}
        )
    yield open_attempt(task, fast_replace(again, seq=last.seq, previous_id=last.previous_id, reason=""), ctx)


def _evaluate_inputs(task: Task, ctx: DecisionContext, id: str) -> dict[str, Any]:
    if (given := ctx.input_override(task.key)) is not None:
        return dict(given)
    seen, kind = ctx.at(task.step, task.key, task), step_type_of(task.step.type)
    fresh = seen.resolve(dict(task.step.inputs), {"CPEWF_TASK_ID": id}, f"The input of task {task.key}")
    if kind.extended_input in fresh:
        fresh = kind.extend_inputs(task.step, task.key, fresh, seen)
    return {**ctx.attempt_payload(task, "input"), **fresh}


def _may_use(task: Task, inputs: Mapping[str, Any], ctx: DecisionContext) -> bool:
    task_type = conductor_task_type(task.step.type, task.step.name)
    try:
        require_named_objects(task.step, task_type, inputs, ctx)
    except StepRefused:
        return False
    return True


def _total_began_at(task: Task) -> int:
    """Return when the total time started: with the first attempt, or with the last one that an operator requested."""
    ends_at = task.attempt.total_ends_at
    return task.created_at if ends_at == NEVER else ends_at - task.step.policy.total_seconds * 1000


def give_up(task: Task) -> ResolveTask:
    """Resolve a task without attempts left; an optional one completes with errors (execution §1.3)."""
    if task.step.optional:
        return ResolveTask(task.key, "complete_with_errors")
    return ResolveTask(task.key, FINAL_EVENTS.get(task.attempt.status, "fail"))


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
