"""decided(standalone, command, now): what a command asks of a stand-alone task, and all that follows from it."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .effects import Effect, apply_effects
from .rules import RULES
from .snapshot import StandaloneTask

Command = Callable[[StandaloneTask, int], Iterable[Effect]]


class StandaloneDecision(NamedTuple):
    """The effects, and the task after them."""

    effects: tuple[Effect, ...]
    after: StandaloneTask


def no_command(standalone: StandaloneTask, now: int) -> Iterable[Effect]:
    """The command that asks for nothing: only what is due happens."""
    return ()


def apply_command(standalone: StandaloneTask, command: Command, now: int) -> StandaloneDecision:
    """What a command asks for and what follows. A deadline that is over by then is heard before it."""
    effects = _run_rules(standalone, now) if standalone.wake_at <= now else []
    before = apply_effects(standalone, effects)
    effects += command(before, now)
    after = apply_effects(standalone, effects)
    effects += _run_rules(after, now)
    return StandaloneDecision(tuple(effects), apply_effects(standalone, effects))


def _run_rules(standalone: StandaloneTask, now: int) -> list[Effect]:
    """A fixpoint over the rules."""
    found: list[Effect] = []
    while standalone.is_open and (new_effects := _first_firing_rule(standalone, now)):
        found += new_effects
        standalone = apply_effects(standalone, new_effects)
    return found


def _first_firing_rule(standalone: StandaloneTask, now: int) -> list[Effect]:
    return next((new_effects for rule in RULES if (new_effects := list(rule(standalone, now)))), [])
