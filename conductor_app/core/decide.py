"""Decide what must happen next in a run: a function of the snapshot, the loaded data and the time.

`DecisionLoop` decides, loads the requested data, and decides again until nothing is missing. Changing, starting,
previewing and simulating a run share it. They differ in what an attempt does with a decision. The commands
of a worker's report are in `commands/reports.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .data_requests import DataRequest, DataRequired, ScriptEvaluation
from .decision_context import Command, DecisionContext, WithoutRules
from .document.reading import makes_branches
from .effects import CreateTask, Effect, apply_effects
from .events import listener_events
from .primitives import fast_replace
from .rules import RULES, RULES_WHILE_RESTING
from .snapshot import Run
from .states import PAUSED
from .timers import is_due, next_run_timer, run_ends_at

MAX_EFFECTS = 5_000
MAX_TASKS_EXAMINED = 300_000
"""The limits of a decision: effects, and tasks that its rules have examined, counted once for each pass.

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
        return _apply(run, command, data, now, saves_partially)
    except DataRequired as missing:
        return Decision((), run, missing.data_requests)


class RuleBudget:
    """The limits of one decision, applied to its passes of the rules."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self._passes = self._tasks = 0

    @property
    def is_spent(self) -> bool:
        """Return True if no further pass is allowed."""
        return len(self.effects) >= MAX_EFFECTS or (self._passes >= MIN_PASSES and self._tasks >= MAX_TASKS_EXAMINED)

    def allows_pass(self, run: Run) -> bool:
        """Return True if a pass is allowed, and count it."""
        if self.is_spent:
            return False
        self._passes += 1
        self._tasks += len(run.tasks)
        return True


def _apply(run: Run, command: Command, data: Mapping[DataRequest, Any], now: int, saves_partially: bool) -> Decision:
    budget = RuleBudget()
    if isinstance(command, WithoutRules):
        return _apply_without_rules(run, command, data, now, budget)
    effects = budget.effects
    before = _run_rules(run, data, now, budget) if _is_anything_due(run, now) else run
    command_effects = list(command(before, DecisionContext(before, data), now))
    effects += command_effects
    after = apply_effects(before, command_effects)
    try:
        after = _run_rules(after, data, now, budget)
    except DataRequired as missing:
        if not (saves_partially and _can_save_partially(effects, missing)):
            raise
        after = fast_replace(apply_effects(run, effects), wake_at=now)
        return Decision(_with_listener_events(run, effects, after, data, now), after, missing.data_requests)
    return Decision(_with_listener_events(run, effects, after, data, now), _set_wake_up(after, now, budget))


def _apply_without_rules(
    run: Run, command: WithoutRules, data: Mapping[DataRequest, Any], now: int, budget: RuleBudget
) -> Decision:
    effects = list(command(run, DecisionContext(run, data), now))
    after = apply_effects(run, effects)
    published = _with_listener_events(run, effects, after, data, now) if command.publishes else tuple(effects)
    return Decision(published, _set_wake_up(after, now, budget))


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
    return fast_replace(run, wake_at=now if budget.is_spent else next_run_timer(run, now))


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
