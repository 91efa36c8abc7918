"""Store what became of a paid call. A fault of the database is waited out, because the reply exists only here."""

import logging
from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

from conductor_app.transient_errors import describe_transient, discard_broken_connection, is_transient

log = logging.getLogger(__name__)

STORING_SECONDS = 600.0
"""The time after which a reply that cannot be stored is lost."""
MAX_PAUSE_SECONDS = 15.0
ResultT = TypeVar("ResultT")


def store_outcome(store: Callable[[], ResultT], seconds: float = STORING_SECONDS) -> ResultT:
    """Return the result of `store`, which is repeated for `seconds` while it raises transient errors.

    Raises:
        Exception: the last error of `store`.
    """
    gives_up_at, pause = monotonic() + seconds, 0.0
    while True:
        try:
            return store()
        except Exception as error:
            if not is_transient(error) or monotonic() + pause > gives_up_at:
                raise
            log.warning("call_outcome_not_stored", extra={"why": describe_transient(error)})
        discard_broken_connection()
        # The first repetition follows at once: mostly the connection was lost long before.
        sleep(pause)
        pause = min(pause * 2 or 0.5, MAX_PAUSE_SECONDS)
