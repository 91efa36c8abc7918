"""decide(snapshot, answers, now): everything that must happen next, given all that is known now."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .data_requests import DataRequest, DataRequired, ScriptEvaluation
from .decision_context import DecisionContext
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
    questions: frozenset[DataRequest] = frozenset()


def no_command(run: Run, ctx: DecisionContext, now: int) -> Iterable[Effect]:
    """The command that asks for nothing: only what is due happens."""
    return ()


def apply_command(
    run: Run, command: Command, answers: Mapping[DataRequest, Any], now: int, in_slices: bool = False
) -> Decision:
    """What a command asks for and all that follows from it. What has run out of time before it, comes before it.

    `in_slices`: where only scripts have to be answered, what was decided so far is handed out beside the questions,
    to be saved and gone on from: a loop that needs no worker would else be decided from its start in each turn.
    """
    try:
        return _apply(run, command, answers, now, in_slices)
    except DataRequired as asked:
        return Decision((), run, asked.questions)


def _apply(run: Run, command: Command, answers: Mapping[DataRequest, Any], now: int, in_slices: bool) -> Decision:
    effects: list[Effect] = []
    before = _run_rules(run, answers, now, effects) if _is_anything_due(run, now) else run
    command_effects = list(command(before, DecisionContext(before, answers), now))
    effects += command_effects
    after = apply_effects(before, command_effects)
    try:
        after = _run_rules(after, answers, now, effects)
    except DataRequired as asked:
        if not (in_slices and _can_save_partially(effects, asked)):
            raise
        after = fast_replace(apply_effects(run, effects), wake_at=now)
        return Decision(_with_listener_events(run, effects, after, answers, now), after, asked.questions)
    return Decision(_with_listener_events(run, effects, after, answers, now), _set_wake_up(after, now, len(effects)))


def _with_listener_events(
    run: Run, effects: list[Effect], after: Run, answers: Mapping[DataRequest, Any], now: int
) -> tuple[Effect, ...]:
    """The effects, and the messages that go out because of them."""
    if not run.definition.publishes_listener_events:
        return tuple(effects)
    return (*effects, *listener_events(run, effects, DecisionContext(after, answers), now))


def _can_save_partially(effects: list[Effect], asked: DataRequired) -> bool:
    """Whether what was decided stands by itself: a dynamic fork does not, before its branches are entered."""
    is_open_fork = any(isinstance(effect, CreateTask) and "forked" in effect.task.step_state for effect in effects)
    return (
        bool(effects)
        and not is_open_fork
        and all(isinstance(question, ScriptEvaluation) for question in asked.questions)
    )


def decide(run: Run, answers: Mapping[DataRequest, Any], now: int) -> Decision:
    """Everything that must happen next."""
    return apply_command(run, no_command, answers, now)


def _is_anything_due(run: Run, now: int) -> bool:
    return run.is_open and (run_ends_at(run) <= now or any(is_due(task, now) for task in run.tasks.values()))


def _run_rules(run: Run, answers: Mapping[DataRequest, Any], now: int, effects: list[Effect]) -> Run:
    """The snapshot after a fixpoint over the rules; what they say is added to `effects`."""
    while run.is_open and len(effects) < BUDGET:
        new_effects = _first_firing_rule(run, answers, now)
        if not new_effects:
            break
        effects += new_effects
        run = apply_effects(run, new_effects)
    return run


def _first_firing_rule(run: Run, answers: Mapping[DataRequest, Any], now: int) -> list[Effect]:
    ctx = DecisionContext(run, answers)
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
