"""Paid calls through the journal."""

from ...models.claimed_attempts import ClaimedAttempt
from ..worker import BuiltInWorker, WorkResult
from .provider_errors import CallFailed


class ModelWorker(BuiltInWorker):
    """A worker that calls a model."""

    def finish(self, attempt: ClaimedAttempt, result: WorkResult) -> None:
        """Delete the stored replies of an attempt that has ended."""


def failed_result(failure: CallFailed, claims: int) -> WorkResult:
    """Return the result of a call without a reply."""
    return WorkResult("FAILED", {}, f"Task execution failed: {failure.reason}")
