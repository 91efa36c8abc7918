"""decide(snapshot, answers, now): everything that must happen next, given all that is known now."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .data_requests import DataRequest, DataRequired, ScriptEvaluation
from .decision_context import DecisionContext
from .document.workflow import makes_branches
from .effects import CreateTask, Effect, apply_effects
from .frozen import fast_replace
from .listener_events import listener_events
from .rules import RULES, RULES_WHILE_RESTING
from .snapshot import Run
from .states import PAUSED
from .timers import is_due, next_run_timer, run_ends_at

BUDGET = 5_000
"""Effects after which a decision stops and asks to be woken at once: a wild loop costs slices, not the process."""

Command = Callable[[Run, DecisionContext, int], Iterable[Effect]]


@dataclass(frozen=True, slots=True)
class Decision:
    """What must happen: effects and the snapshot after them; or what must be answered first."""

    effects: tuple[Effect, ...]
    after: Run
    data_requests: frozenset[DataRequest] = frozenset()


def no_command(run: Run, ctx: DecisionContext, now: int) -> Iterable[Effect]:
    """The command that asks for nothing: only what is due happens."""
    return ()


def apply_command(
    run: Run, command: Command, data: Mapping[DataRequest, Any], now: int, saves_partially: bool = False
) -> Decision:
    """What a command asks for and all that follows from it. What has run out of time before it, comes before it.

    `saves_partially`: if only scripts are missing, return the effects so far together with the requests,
    to be saved and gone on from: a loop that needs no worker would else be decided from its start in each turn.
    """
    try:
        return _apply(run, command, data, now, saves_partially)
    except DataRequired as missing:
        return Decision((), run, missing.data_requests)


def _apply(run: Run, command: Command, data: Mapping[DataRequest, Any], now: int, saves_partially: bool) -> Decision:
    effects: list[Effect] = []
    before = _run_rules(run, data, now, effects) if _is_anything_due(run, now) else run
    command_effects = list(command(before, DecisionContext(before, data), now))
    effects += command_effects
    after = apply_effects(before, command_effects)
    try:
        after = _run_rules(after, data, now, effects)
    except DataRequired as missing:
        if not (saves_partially and _can_save_partially(effects, missing)):
            raise
        after = fast_replace(apply_effects(run, effects), wake_at=now)
        return Decision(_with_listener_events(run, effects, after, data, now), after, missing.data_requests)
    return Decision(_with_listener_events(run, effects, after, data, now), _set_wake_up(after, now, len(effects)))


def _with_listener_events(
    run: Run, effects: list[Effect], after: Run, data: Mapping[DataRequest, Any], now: int
) -> tuple[Effect, ...]:
    """The effects, and the messages that go out because of them."""
    if not run.definition.publishes_listener_events:
        return tuple(effects)
    return (*effects, *listener_events(run, effects, DecisionContext(after, data), now))


def _can_save_partially(effects: list[Effect], missing: DataRequired) -> bool:
    """Whether what was decided stands by itself: a dynamic fork does not, before its branches are entered."""
    is_open_fork = any(isinstance(effect, CreateTask) and makes_branches(effect.task.step) for effect in effects)
    return (
        bool(effects)
        and not is_open_fork
        and all(isinstance(request, ScriptEvaluation) for request in missing.data_requests)
    )


def decide(run: Run, data: Mapping[DataRequest, Any], now: int) -> Decision:
    """Everything that must happen next."""
    return apply_command(run, no_command, data, now)


def _is_anything_due(run: Run, now: int) -> bool:
    return run.is_open and (run_ends_at(run) <= now or any(is_due(task, now) for task in run.tasks.values()))


def _run_rules(run: Run, data: Mapping[DataRequest, Any], now: int, effects: list[Effect]) -> Run:
    """The snapshot after a fixpoint over the rules; what they say is added to `effects`."""
    while run.is_open and len(effects) < BUDGET:
        new_effects = _first_firing_rule(run, data, now)
        if not new_effects:
            break
        effects += new_effects
        run = apply_effects(run, new_effects)
    return run


def _first_firing_rule(run: Run, data: Mapping[DataRequest, Any], now: int) -> list[Effect]:
    ctx = DecisionContext(run, data)
    rests = run.status == PAUSED or run.begins_later(now)
    for rule in RULES_WHILE_RESTING if rests else RULES:
        new_effects = list(rule(run, ctx, now))
        if new_effects:
            return new_effects
    return []


def _set_wake_up(run: Run, now: int, count: int) -> Run:
    if not run.is_open:
        return run
    return fast_replace(run, wake_at=now if count >= BUDGET else next_run_timer(run, now))
