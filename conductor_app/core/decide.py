"""decide(snapshot, answers, now): everything that must happen next, given all that is known now."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .data_requests import DataRequest, DataRequired, ScriptEvaluation
from .decision_context import DecisionContext
from .effects import CreateTask, Effect, apply_effects
from .listener_events import listener_events
from .rules import RULES, RULES_WHILE_RESTING
from .snapshot import Run
from .states import PAUSED
from .timers import is_due, run_ends_at, run_wakes_at
from .values import replace

BUDGET = 5_000
"""Effects after which a decision stops and asks to be woken at once: a wild loop costs slices, not the process."""

Command = Callable[[Run, DecisionContext, int], Iterable[Effect]]


@dataclass(frozen=True, slots=True)
class Decision:
    """What must happen: effects and the snapshot after them; or what must be answered first."""

    effects: tuple[Effect, ...]
    after: Run
    questions: frozenset[DataRequest] = frozenset()


def nothing(run: Run, ctx: DecisionContext, now: int) -> Iterable[Effect]:
    """The command that asks for nothing: only what is due happens."""
    return ()


def command_then_decide(
    run: Run, command: Command, answers: Mapping[DataRequest, Any], now: int, in_slices: bool = False
) -> Decision:
    """What a command asks for and all that follows from it. What has run out of time before it, comes before it.

    `in_slices`: where only scripts have to be answered, what was decided so far is handed out beside the questions,
    to be saved and gone on from: a loop that needs no worker would else be decided from its start in each turn.
    """
    try:
        return _heard(run, command, answers, now, in_slices)
    except DataRequired as asked:
        return Decision((), run, asked.questions)


def _heard(run: Run, command: Command, answers: Mapping[DataRequest, Any], now: int, in_slices: bool) -> Decision:
    effects: list[Effect] = []
    before = _decided(run, answers, now, effects) if _has_run_out(run, now) else run
    asked_for = list(command(before, DecisionContext(before, answers), now))
    effects += asked_for
    after = apply_effects(before, asked_for)
    try:
        after = _decided(after, answers, now, effects)
    except DataRequired as asked:
        if not (in_slices and _is_a_slice(effects, asked)):
            raise
        after = replace(apply_effects(run, effects), wake_at=now)
        return Decision(_told(run, effects, after, answers, now), after, asked.questions)
    return Decision(_told(run, effects, after, answers, now), _with_wake_up(after, now, len(effects)))


def _told(
    run: Run, effects: list[Effect], after: Run, answers: Mapping[DataRequest, Any], now: int
) -> tuple[Effect, ...]:
    """The effects, and the messages that go out because of them."""
    if not run.definition.is_told_of:
        return tuple(effects)
    return (*effects, *listener_events(run, effects, DecisionContext(after, answers), now))


def _is_a_slice(effects: list[Effect], asked: DataRequired) -> bool:
    """Whether what was decided stands by itself: a dynamic fork does not, before its branches are entered."""
    is_open_fork = any(isinstance(effect, CreateTask) and "forked" in effect.task.step_state for effect in effects)
    return (
        bool(effects)
        and not is_open_fork
        and all(isinstance(question, ScriptEvaluation) for question in asked.questions)
    )


def decide(run: Run, answers: Mapping[DataRequest, Any], now: int) -> Decision:
    """Everything that must happen next."""
    return command_then_decide(run, nothing, answers, now)


def _has_run_out(run: Run, now: int) -> bool:
    return run.is_open and (run_ends_at(run) <= now or any(is_due(task, now) for task in run.tasks.values()))


def _decided(run: Run, answers: Mapping[DataRequest, Any], now: int, effects: list[Effect]) -> Run:
    """The snapshot after a fixpoint over the rules; what they say is added to `effects`."""
    while run.is_open and len(effects) < BUDGET:
        spoken = _first_to_speak(run, answers, now)
        if not spoken:
            break
        effects += spoken
        run = apply_effects(run, spoken)
    return run


def _first_to_speak(run: Run, answers: Mapping[DataRequest, Any], now: int) -> list[Effect]:
    ctx = DecisionContext(run, answers)
    rests = run.status == PAUSED or run.begins_later(now)
    for rule in RULES_WHILE_RESTING if rests else RULES:
        spoken = list(rule(run, ctx, now))
        if spoken:
            return spoken
    return []


def _with_wake_up(run: Run, now: int, count: int) -> Run:
    if not run.is_open:
        return run
    return replace(run, wake_at=now if count >= BUDGET else run_wakes_at(run, now))
