"""Repeat transactions that met rows changed by another process, or a transient error."""

from collections.abc import Callable
from typing import TypeVar

from ..core.errors import Busy
from ..store.statement_batch import StaleRow
from .transient_faults import FaultTolerance

MAX_STALE_ATTEMPTS = 5
"""Attempts that meet rows changed by another process before the request is refused as Busy."""
Result = TypeVar("Result")


def repeat_while_stale(attempt: Callable[[], Result], **subject: str) -> Result:
    """Call `attempt` until it meets no row that another process changed, and return its result.

    Raises:
        Busy: when each of MAX_STALE_ATTEMPTS attempts met such a row. `subject` names the object in the error.
    """
    faults = FaultTolerance()
    for _ in range(MAX_STALE_ATTEMPTS):
        try:
            return faults.repeat(attempt)
        except StaleRow:
            continue
    raise Busy(**subject)
