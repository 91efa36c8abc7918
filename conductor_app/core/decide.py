"""Decide what must happen next in a run: a function of the snapshot, the loaded data and the time.

From the report of a completed task to the next task:

1. `apply_report` completes the attempt. The commands on one attempt are here: apply a worker's report, renew or
   release its lease, requeue it, and apply the end or the loss of its child run.
2. The rules run until none fires (`_run_rules`): `progress` of `core/rules/advance.py` resolves the task, and
   `advance` enters each step that has control now (`enter_step`). The type of the step creates a task in its queue,
   visible at once or after a delay (`core/step_types/base.py:queued_task`).
3. `runs/commands/change.py` locked the run before, and writes the effects in the transaction of the report (those of a
   long decision in parts). After its commit, a claim finds the task when it is visible (`tasks/claims.sql`). The
   announcement of the queue only wakes polls that wait. Claims are not commands: they change rows without a decision.

`DecisionLoop` decides, loads the requested data, and decides again until nothing is missing. Changing, starting,
previewing and simulating a run share it. They differ in what an attempt does with a decision.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from .caching import cache_task_result
from .data_requests import DataRequest, DataRequired, ScriptEvaluation
from .decision_context import Command, DecisionContext, WithoutRules
from .document.reading import makes_branches
from .effects import CreateTask, Effect, OpenAttempt, RequeueAttempt, TransitionAttempt, UpdateTask, apply_effects
from .errors import AlreadyResolved, Conflict, NotAllowedInState, quote_reason
from .events import listener_events
from .expressions.jsonpath_segments import VisitCounter, count_visits
from .expressions.patterns import share_match_time
from .primitives import fast_replace
from .rules import RULES, RULES_WHILE_RESTING
from .rules.retries_and_timeouts import next_attempt, return_to_queue
from .schemas import schema_violation
from .snapshot import Run, Task
from .states import LEASED, PAUSED, PENDING
from .step_types import step_type_of
from .timers import is_due, next_run_timer, next_timer, run_ends_at

MAX_EFFECTS = 5_000
MAX_TASKS_EXAMINED = 300_000
MAX_VALUES_VISITED = 1_000_000
"""The limits of a decision: effects, tasks that its rules have examined, counted once for each pass, and values that
its paths have visited.

After them it continues in a new transaction, so that a long loop without workers does not hold the lock of its run.
"""
MIN_PASSES = 50
"""Passes of the rules that every decision may have, however many tasks its run has."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The effects of a decision and the snapshot after them, or the data that must be loaded first."""

    effects: tuple[Effect, ...]
    after: Run
    data_requests: frozenset[DataRequest] = frozenset()


@dataclass(frozen=True, slots=True)
class RevisionInfo:
    """The time of a change in epoch milliseconds, its author and its reason, as the history of the run stores them."""

    at: int
    by: str
    reason: str = ""


def no_command(run: Run, ctx: DecisionContext, now: int) -> Iterable[Effect]:
    """Apply no command, so that the decision consists of due timers and rules only."""
    return ()


def apply_command(
    run: Run, command: Command, data: Mapping[DataRequest, Any], now: int, saves_partially: bool = False
) -> Decision:
    """Return the effects of a command and of all rules that fire after it. Due timers are handled before the command.

    A command of the class `WithoutRules` is applied alone.

    `saves_partially`: if only results of scripts are missing, return the effects so far together with the requests.
    The caller saves them and continues from there; otherwise a loop without workers would be re-evaluated from its
    first iteration every time.
    """
    try:
        with count_visits() as visits, share_match_time():
            return _apply(run, command, data, now, RuleBudget(visits, saves_partially))
    except DataRequired as missing:
        return Decision((), run, missing.data_requests)


class RuleBudget:
    """The limits of one decision, applied to its passes of the rules. `saves_partially`: see `apply_command`."""

    def __init__(self, visits: VisitCounter, saves_partially: bool) -> None:
        self.effects: list[Effect] = []
        self.saves_partially = saves_partially
        self._visits = visits
        self._passes = self._tasks = 0
        self._was_refused = False

    @property
    def is_spent(self) -> bool:
        """Return True if no further pass is allowed."""
        return (
            len(self.effects) >= MAX_EFFECTS
            or self._visits.count >= MAX_VALUES_VISITED
            or (self._passes >= MIN_PASSES and self._tasks >= MAX_TASKS_EXAMINED)
        )

    @property
    def is_unfinished(self) -> bool:
        """Return True if another decision must continue."""
        return self._was_refused or len(self.effects) >= MAX_EFFECTS

    def allows_pass(self, run: Run) -> bool:
        """Return True if a pass is allowed, and count it."""
        if self.is_spent:
            self._was_refused = True
            return False
        self._passes += 1
        self._tasks += len(run.tasks)
        return True


def _apply(run: Run, command: Command, data: Mapping[DataRequest, Any], now: int, budget: RuleBudget) -> Decision:
    if isinstance(command, WithoutRules):
        effects = list(command(run, DecisionContext(run, data), now))
        after = apply_effects(run, effects)
        published = _with_listener_events(run, effects, after, data, now) if command.publishes else tuple(effects)
        return Decision(published, _set_wake_up(after, now, budget))
    effects = budget.effects
    before = _run_rules(run, data, now, budget) if _is_anything_due(run, now) else run
    command_effects = list(command(before, DecisionContext(before, data), now))
    effects += command_effects
    after = apply_effects(before, command_effects)
    try:
        after = _run_rules(after, data, now, budget)
    except DataRequired as missing:
        if not (budget.saves_partially and _can_save_partially(effects, missing)):
            raise
        after = fast_replace(apply_effects(run, effects), wake_at=now)
        return Decision(_with_listener_events(run, effects, after, data, now), after, missing.data_requests)
    return Decision(_with_listener_events(run, effects, after, data, now), _set_wake_up(after, now, budget))


def _with_listener_events(
    run: Run, effects: list[Effect], after: Run, data: Mapping[DataRequest, Any], now: int
) -> tuple[Effect, ...]:
    """Return the effects and the listener events that they cause."""
    if not run.definition.publishes_listener_events:
        return tuple(effects)
    return (*effects, *listener_events(run, effects, DecisionContext(after, data), now))


def _can_save_partially(effects: list[Effect], missing: DataRequired) -> bool:
    """Return True if the effects so far can be saved; a dynamic fork cannot before its branches are entered."""
    is_open_fork = any(isinstance(effect, CreateTask) and makes_branches(effect.task.step) for effect in effects)
    return (
        bool(effects)
        and not is_open_fork
        and all(isinstance(request, ScriptEvaluation) for request in missing.data_requests)
    )


def decide(run: Run, data: Mapping[DataRequest, Any], now: int) -> Decision:
    """Return everything that must happen next in a run."""
    return apply_command(run, no_command, data, now)


def _is_anything_due(run: Run, now: int) -> bool:
    return run.is_open and (run_ends_at(run) <= now or any(is_due(task, now) for task in run.tasks.values()))


def _run_rules(run: Run, data: Mapping[DataRequest, Any], now: int, budget: RuleBudget) -> Run:
    """Apply rules until none fires, and return the last snapshot. Appends to the effects of the budget."""

    def first_firing_rule(each: Run) -> list[Effect]:
        return _first_firing_rule(each, data, now) if budget.allows_pass(each) else []

    return run_to_fixpoint(run, budget.effects, first_firing_rule, apply_effects, MAX_EFFECTS)


def _first_firing_rule(run: Run, data: Mapping[DataRequest, Any], now: int) -> list[Effect]:
    ctx = DecisionContext(run, data)
    rests = run.status == PAUSED or run.begins_later(now)
    for rule in RULES_WHILE_RESTING if rests else RULES:
        new_effects = list(rule(run, ctx, now))
        if new_effects:
            return new_effects
    return []


def _set_wake_up(run: Run, now: int, budget: RuleBudget) -> Run:
    if not run.is_open:
        return run
    return fast_replace(run, wake_at=now if budget.is_unfinished else next_run_timer(run, now))


MAX_ROUNDS = 500
"""Rounds of one loop. A DO_WHILE may request the value of its condition in each iteration."""
ROUNDS_BEFORE_PARTIAL_SAVE = 8
"""Rounds that decide from the beginning. After them, effects are saved while the next script runs."""


class DecisionLoop(ABC):
    """Loop of one command and the rules after it. `effects`: those of all attempts so far."""

    max_rounds = MAX_ROUNDS

    def __init__(self) -> None:
        self.effects: tuple[Effect, ...] = ()

    def run(self) -> tuple[Effect, ...]:
        """Return the effects of the command. Exceptions of the attempts propagate."""
        for round_number in range(self.max_rounds):
            decision = self.attempt(saves_partially=round_number >= ROUNDS_BEFORE_PARTIAL_SAVE)
            if decision is None:
                continue
            self.effects += decision.effects
            if not decision.data_requests or (decision.effects and not self.continue_after_partial_save()):
                return self.effects
            self.load(decision.data_requests)
        return self.on_exhausted()

    @abstractmethod
    def attempt(self, saves_partially: bool) -> Decision | None:
        """Decide and save. Returns None to be called again.

        `saves_partially`: where only scripts are missing, save the effects so far and return both.
        """

    @abstractmethod
    def load(self, requests: Iterable[DataRequest]) -> None:
        """Load the data that the decision requests."""

    @abstractmethod
    def on_exhausted(self) -> tuple[Effect, ...]:
        """Return the effects after the last round, or raise."""

    def continue_after_partial_save(self) -> bool:
        """Prepare the next attempt after a partial save. Return False to end here; a later decision continues."""
        return True


class Snapshot(Protocol):
    """Snapshot of a run or of a standalone task."""

    @property
    def is_open(self) -> bool: ...


SnapshotT = TypeVar("SnapshotT", bound=Snapshot)
EffectT = TypeVar("EffectT")


def run_to_fixpoint(
    snapshot: SnapshotT,
    effects: list[EffectT],
    first_firing_rule: Callable[[SnapshotT], list[EffectT]],
    apply_effects: Callable[[SnapshotT, list[EffectT]], SnapshotT],
    max_effects: int,
) -> SnapshotT:
    """Apply rules until none fires, the snapshot is final, or there are `max_effects` effects.

    Appends the new effects to `effects`, and returns the snapshot after them.
    """
    while snapshot.is_open and len(effects) < max_effects:
        new_effects = first_firing_rule(snapshot)
        if not new_effects:
            break
        effects += new_effects
        snapshot = apply_effects(snapshot, new_effects)
    return snapshot


EVENTS_OF_OUTCOMES = {
    "COMPLETED": "complete",
    "FAILED": "fail",
    "FAILED_FOR_GOOD": "fail_for_good",
    "CANCELED": "cancel",
    "TIMED_OUT": "expire",
}
"""Event of the attempt's state table for each outcome that ends an attempt."""


@dataclass(frozen=True, slots=True)
class Report:
    """Report of a worker on its attempt.

    `outcome`: a key of EVENTS_OF_OUTCOMES, or IN_PROGRESS. `callback_seconds`: delay before a worker can
    claim the attempt again.
    """

    outcome: str
    output: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    callback_seconds: int = 0
    worker: str = ""
    merges: bool = False  # the output is merged into the stored one instead of replacing it
    is_kept: bool | None = None  # in progress, but no worker may claim it again; None: as the step's asyncComplete says
    lease: int | None = None  # `scheduled_at` of the attempt that the worker holds, if the report has it


def apply_report(attempt_id: str, report: Report) -> Command:
    """Return the command that applies a report. The command raises AlreadyResolved if the attempt has ended."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = require_open_task(run, attempt_id, report.worker, report.lease)
        facts = {"output": _merged_output(task, report, ctx), "worker": report.worker or task.attempt.worker}
        facts |= {"reason": report.reason} if report.reason or report.outcome != "IN_PROGRESS" else {}
        if report.outcome == "COMPLETED":
            effect = _complete_attempt(task, facts, ctx, now)
            yield effect
            if effect.event == "complete":
                yield from cache_task_result(task, now)
        elif report.outcome in EVENTS_OF_OUTCOMES:
            yield TransitionAttempt(task.key, EVENTS_OF_OUTCOMES[report.outcome], now, facts)
        elif step_type_of(task.step.type).is_queued and not _keeps_lease(task, report):
            yield return_to_queue(task, report.callback_seconds, facts, now)
        else:
            yield TransitionAttempt(task.key, "renew", now, {**facts, "lease_ends_at": None})

    return command


def _complete_attempt(task: Task, facts: dict[str, Any], ctx: DecisionContext, now: int) -> TransitionAttempt:
    """Return the effect that completes the attempt, or fails it without retry if its output violates its schema."""
    if reason := schema_violation(task.step.policy.output_schema, facts["output"], "output", ctx):
        return TransitionAttempt(task.key, "fail_for_good", now, {**facts, "reason": reason})
    return TransitionAttempt(task.key, "complete", now, facts)


def _keeps_lease(task: Task, report: Report) -> bool:
    """Return True if an attempt in progress is reported on from outside, so that no other worker may claim it."""
    return task.step.async_complete if report.is_kept is None else report.is_kept


def renew_lease(attempt_id: str, worker: str = "") -> Command:
    """Return the command that renews the lease and changes nothing else (execution §4.4)."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = require_open_task(run, attempt_id, worker)
        ends_at = now + task.attempt.lease_ms if task.attempt.lease_ms and task.attempt.status != PENDING else None
        attempt = fast_replace(task.attempt, lease_ends_at=ends_at)
        due_at = next_timer(task.step.policy, attempt, now)
        yield TransitionAttempt(task.key, "renew", now, {"lease_ends_at": ends_at, "due_at": due_at})

    return command


def child_ended(attempt_id: str, child: dict[str, Any]) -> Command:
    """Return the command for the end of a child run.

    `child`: id, name, version, status, reason and output. The command raises AlreadyResolved if the task has ended or
    waits for another child.

    Raises:
        AlreadyResolved: when the command is applied and no task waits for this child.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = require_open_task(run, attempt_id)
        if task.attempt.child_id != child["id"]:
            # The task was entered again under its id and waits for another child.
            raise AlreadyResolved(attempt=attempt_id)
        facts: dict[str, Any] = {"output": {**(child["output"] or {}), "subWorkflowId": child["id"]}}
        if child["status"] != "COMPLETED":
            facts["reason"] = (
                f"Sub workflow {child['name']}.{child['version']}/{child['id']} failure reason: "
                f"{quote_reason(child['reason'], child['id'])}"
            )
        else:
            yield _complete_attempt(task, facts, ctx, now)
            return
        outcome = {"TERMINATED": "CANCELED"}.get(child["status"], child["status"])
        yield TransitionAttempt(task.key, EVENTS_OF_OUTCOMES[outcome], now, facts)

    return command


def child_lost(attempt_id: str, child_id: str) -> Command:
    """Return the command that starts another child for a task whose child was deleted.

    Raises:
        AlreadyResolved: when the command is applied and no task waits for this child.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = require_open_task(run, attempt_id)
        if task.attempt.child_id != child_id:
            raise AlreadyResolved(attempt=attempt_id)
        yield TransitionAttempt(task.key, "cancel", now, {"reason": f"Sub workflow {child_id} was deleted."})
        yield OpenAttempt(task.key, next_attempt(task, ctx, now, delay=0))

    return command


def require_open_task(run: Run, attempt_id: str, reporter: str = "", lease: int | None = None) -> Task:
    """Return the task whose open attempt this is.

    `reporter`: the worker that reports. `lease`: `scheduled_at` of the attempt that it holds, in epoch milliseconds.

    Raises:
        AlreadyResolved: when the attempt has ended, or was reopened under its id after the reporter's lease expired.
    """
    task = run.task_of_attempt(attempt_id)
    if task is None or not task.attempt.is_open or not run.is_open:
        raise AlreadyResolved(attempt=attempt_id)
    if lease is not None and lease != task.attempt.scheduled_at:
        raise AlreadyResolved(attempt=attempt_id)
    if reporter and reporter != task.attempt.worker and reporter in task.former_workers:
        raise AlreadyResolved(attempt=attempt_id)
    return task


def _merged_output(task: Task, report: Report, ctx: DecisionContext) -> dict[str, Any]:
    if not report.merges:
        return report.output
    return {**(ctx.attempt_payload(task, "output") or {}), **report.output}


def reset_callbacks(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects that end callback delays and retry delays of pending tasks (execution §7.2).

    Raises:
        NotAllowedInState: when the run has ended.
    """
    if not run.is_open:
        raise NotAllowedInState(
            f"Workflow {run.id} is {run.status}. Callbacks can only be reset while it is running or paused."
        )
    for task in run.open_tasks:
        attempt = task.attempt
        if attempt.status == PENDING and attempt.queue and attempt.callback_ms and attempt.visible_at > now:
            facts: dict[str, Any] = {"visible_at": now, "pending_since": now, "callback_ms": 0}
            due_at = next_timer(task.step.policy, fast_replace(attempt, **facts), now)
            yield UpdateTask(task.key, attempt_facts={**facts, "due_at": due_at})


def requeue_attempt(attempt_id: str, facts: Mapping[str, Any]) -> Command:
    """Return the command that changes these fields of a pending attempt.

    If it ends a delay, the poll timeout starts again.

    Raises:
        Conflict: when the command is applied and the attempt is not in a queue.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = require_open_task(run, attempt_id)
        if task.attempt.status != PENDING or not task.attempt.queue:
            raise Conflict(f"Task {attempt_id} is {task.attempt.status}. It is not waiting in a queue.")
        fresh = dict(facts)
        if task.attempt.visible_at > now and fresh.get("visible_at", task.attempt.visible_at) <= now:
            fresh |= {"pending_since": now, "callback_ms": 0}
        fresh["due_at"] = next_timer(task.step.policy, fast_replace(task.attempt, **fresh), now)
        yield RequeueAttempt(task.key, fresh)

    return command


def release_lease(attempt_id: str) -> Command:
    """Return the command that releases a leased attempt to its queue, as if its worker had done so; its number stays.

    Raises:
        Conflict: when the command is applied and no worker holds the attempt.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[TransitionAttempt]:
        task = require_open_task(run, attempt_id)
        if task.attempt.status != LEASED or not task.attempt.queue:
            raise Conflict(f"Task {attempt_id} is {task.attempt.status}. No worker holds it.")
        yield return_to_queue(task, 0, {}, now)

    return command
