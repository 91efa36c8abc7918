"""The loop around a decision: decide, load the requested data, and decide again until nothing is missing.

Changing, starting, previewing and simulating a run share it. They differ in what an attempt does with a decision.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from .data_requests import DataRequest
from .decide import Decision
from .effects import Effect

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
