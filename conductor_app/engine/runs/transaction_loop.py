"""A decision loop whose attempts are transactions. It repeats those that met conflicts, faults or large payloads."""

from abc import abstractmethod
from collections.abc import Iterable
from functools import partial

from django.db import DataError, InternalError

from ...core.data_requests import DataRequest
from ...core.decide import Decision
from ...core.decision_loop import DecisionLoop
from ...store.payload_placement import PayloadsTooLarge
from ...store.statement_batch import StaleRow, StatementBatch
from ..transient_faults import FaultTolerance
from .data_loading import LoadedData
from .decision import ChildStarts, DecisionFailed


class TransactionLoop(DecisionLoop):
    """The loop of a change or a start. `data`: the data loaded for its decision."""

    def __init__(self, data: LoadedData) -> None:
        super().__init__()
        self.data = data
        self.child_starts: ChildStarts | None = None
        self.begins_children = True
        self.faults = FaultTolerance()
        self.has_failed_once = False

    def new_child_starts(self, writes: StatementBatch, now: int) -> ChildStarts:
        """Return the runs that begin together with the decision of this attempt."""
        self.child_starts = ChildStarts(writes, now, is_enabled=self.begins_children)
        return self.child_starts

    @abstractmethod
    def run_transaction(self, saves_partially: bool) -> Decision:
        """Decide and save in one transaction.

        Raises:
            StaleRow: when another process changed a row.
            PayloadsTooLarge: when payloads must be stored in blob storage first.
        """

    @abstractmethod
    def on_stale(self) -> None:
        """Prepare the next attempt after another process changed a row, or raise."""

    def attempt(self, saves_partially: bool) -> Decision | None:
        self.child_starts = None
        try:
            return self.run_transaction(saves_partially)
        except (StaleRow, DataError, InternalError) as error:
            if self.child_starts and self.child_starts.begun:
                # A child may be the cause. Repeat without them: they begin in transactions of their own.
                self.begins_children = False
                self.data.forget_transient()
            elif isinstance(error, StaleRow):
                self.on_stale()
            elif not self._can_repeat_after(error):
                raise
        except PayloadsTooLarge as found:
            # Stored now, they are found by their digests: the next attempt writes their paths.
            self.data.forget_transient()
            self.faults.repeat(partial(self.data.keep, found.texts))
        except DecisionFailed:
            # Only an exception that it raises again, from data that was read again, says something about the run.
            if self.has_failed_once:
                raise
            self.has_failed_once = True
            self.data.clear()
        except Exception as error:
            if not self._can_repeat_after(error):
                raise
        return None

    def _can_repeat_after(self, error: Exception) -> bool:
        """Prepare the next attempt after a transient error. Return False if there must be none."""
        if not self.faults.wait_after(error):
            return False
        self.data.forget_transient()
        return True

    def load(self, requests: Iterable[DataRequest]) -> None:
        self.data.forget_transient()
        self.faults.repeat(lambda: self.data.evaluate_scripts(requests))
