"""Repeat what met a transient error of the server itself, after a short delay and without a transaction."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from ..core.errors import RequestRefused
from ..store.statements import is_in_transaction
from ..transient_errors import discard_broken_connection, is_transient

log = logging.getLogger(__name__)

REPEAT_DELAYS = (0.02, 0.2)
"""The delays before the repetitions, in seconds. Then the caller gets the error, and decides when to repeat all."""
MAX_SECONDS = 5.0
"""The time after which nothing is repeated: a statement that waited for a lock until its timeout would wait again."""
Result = TypeVar("Result")


class FaultTolerance:
    """The repetitions of one operation."""

    def __init__(self) -> None:
        self._began, self._count = time.monotonic(), 0

    def repeat(self, operation: Callable[[], Result]) -> Result:
        """Call the operation until it meets no transient error, and return its result. Other errors are raised."""
        while True:
            try:
                return operation()
            except Exception as error:
                if not self.wait_after(error):
                    raise

    def wait_after(self, error: Exception) -> bool:
        """Wait before a repetition. Return False if the error is not transient, or was repeated often enough.

        Refusals such as Busy are not repeated: what raises them has waited itself. Within a transaction nothing is
        repeated, because only all of the transaction can be.
        """
        is_repeated = self._count < len(REPEAT_DELAYS) and time.monotonic() - self._began < MAX_SECONDS
        if not is_repeated or isinstance(error, RequestRefused) or not is_transient(error) or is_in_transaction():
            return False
        log.warning("repeated_after_fault", extra={"cause": f"{type(error).__name__}: {error}"[:500]})
        time.sleep(REPEAT_DELAYS[self._count])
        self._count += 1
        # A lost connection would fail every repetition.
        discard_broken_connection()
        return True
