"""decided(solo, command, now): what a command asks of a stand-alone task, and all that follows from it."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .effects import Effect, evolve
from .rules import RULES
from .snapshot import Solo

Command = Callable[[Solo, int], Iterable[Effect]]


class Decision(NamedTuple):
    """The effects, and the task after them."""

    effects: tuple[Effect, ...]
    after: Solo


def nothing(solo: Solo, now: int) -> Iterable[Effect]:
    """The command that asks for nothing: only what is due happens."""
    return ()


def decided(solo: Solo, command: Command, now: int) -> Decision:
    """What a command asks for and what follows. A deadline that is over by then is heard before it."""
    effects = _settled(solo, now) if solo.wake_at <= now else []
    before = evolve(solo, effects)
    effects += command(before, now)
    after = evolve(solo, effects)
    effects += _settled(after, now)
    return Decision(tuple(effects), evolve(solo, effects))


def _settled(solo: Solo, now: int) -> list[Effect]:
    """A fixpoint over the rules."""
    found: list[Effect] = []
    while solo.is_open and (spoken := _first_to_speak(solo, now)):
        found += spoken
        solo = evolve(solo, spoken)
    return found


def _first_to_speak(solo: Solo, now: int) -> list[Effect]:
    return next((spoken for rule in RULES if (spoken := list(rule(solo, now)))), [])
