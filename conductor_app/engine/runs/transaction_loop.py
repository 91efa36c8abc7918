"""A decision loop whose attempts are transactions: it repeats an attempt that met a conflict or large payloads."""

from abc import abstractmethod
from collections.abc import Iterable

from ...core.data_requests import DataRequest
from ...core.decide import Decision
from ...core.decision_loop import DecisionLoop
from ...store.payload_placement import PayloadsTooLarge
from ...store.statement_batch import StaleRow
from .data_loading import LoadedData


class TransactionLoop(DecisionLoop):
    """The loop of a change or a start. `data`: the data loaded for its decision."""

    def __init__(self, data: LoadedData) -> None:
        super().__init__()
        self.data = data

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
        try:
            return self.run_transaction(saves_partially)
        except StaleRow:
            self.on_stale()
        except PayloadsTooLarge as found:
            # Stored now, they are found by their digests: the next attempt writes their paths.
            self.data.forget_transient()
            self.data.keep(found.texts)
        return None

    def load(self, requests: Iterable[DataRequest]) -> None:
        self.data.forget_transient()
        self.data.evaluate_scripts(requests)
