"""decided(standalone, command, now): what a command asks of a stand-alone task, and all that follows from it."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .effects import Effect, evolve
from .rules import RULES
from .snapshot import StandaloneTask

Command = Callable[[StandaloneTask, int], Iterable[Effect]]


class Decision(NamedTuple):
    """The effects, and the task after them."""

    effects: tuple[Effect, ...]
    after: StandaloneTask


def nothing(standalone: StandaloneTask, now: int) -> Iterable[Effect]:
    """The command that asks for nothing: only what is due happens."""
    return ()


def decided(standalone: StandaloneTask, command: Command, now: int) -> Decision:
    """What a command asks for and what follows. A deadline that is over by then is heard before it."""
    effects = _settled(standalone, now) if standalone.wake_at <= now else []
    before = evolve(standalone, effects)
    effects += command(before, now)
    after = evolve(standalone, effects)
    effects += _settled(after, now)
    return Decision(tuple(effects), evolve(standalone, effects))


def _settled(standalone: StandaloneTask, now: int) -> list[Effect]:
    """A fixpoint over the rules."""
    found: list[Effect] = []
    while standalone.is_open and (spoken := _first_to_speak(standalone, now)):
        found += spoken
        standalone = evolve(standalone, spoken)
    return found


def _first_to_speak(standalone: StandaloneTask, now: int) -> list[Effect]:
    return next((spoken for rule in RULES if (spoken := list(rule(standalone, now)))), [])
