"""Decide what must happen next in a standalone task."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..fixpoint import run_to_fixpoint
from .effects import Effect, apply_effects
from .rules import RULES
from .snapshot import StandaloneTask

MAX_EFFECTS = 1_000
"""Effects of one decision. The rules of a standalone task end after a few; the limit guards against an endless loop."""
Command = Callable[[StandaloneTask, int], Iterable[Effect]]


class StandaloneDecision(NamedTuple):
    """The effects, and the task after them."""

    effects: tuple[Effect, ...]
    after: StandaloneTask


def no_command(standalone: StandaloneTask, now: int) -> Iterable[Effect]:
    """Apply no command, so that the decision consists of due timers and rules only."""
    return ()


def apply_command(standalone: StandaloneTask, command: Command, now: int) -> StandaloneDecision:
    """Return the effects of a command and of all rules that fire after it.

    A passed deadline is handled before the command.
    """
    effects: list[Effect] = []
    before = _run_rules(standalone, effects, now) if standalone.wake_at <= now else standalone
    command_effects = list(command(before, now))
    effects += command_effects
    after = _run_rules(apply_effects(before, command_effects), effects, now)
    return StandaloneDecision(tuple(effects), after)


def _run_rules(standalone: StandaloneTask, effects: list[Effect], now: int) -> StandaloneTask:
    """Apply rules until none fires, and return the last snapshot. Appends to `effects`."""
    return run_to_fixpoint(standalone, effects, lambda each: _first_firing_rule(each, now), apply_effects, MAX_EFFECTS)


def _first_firing_rule(standalone: StandaloneTask, now: int) -> list[Effect]:
    return next((new_effects for rule in RULES if (new_effects := list(rule(standalone, now)))), [])
