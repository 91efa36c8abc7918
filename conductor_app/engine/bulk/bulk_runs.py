"""One command on many runs: each run has its own transaction and its own result."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ...core.errors import RequestRefused
from ...transient_errors import describe_transient, discard_broken_connection, is_transient

log = logging.getLogger(__name__)

MAX_IDS = 1000
"""The maximum number of runs in one request (api §1.3)."""


@dataclass(frozen=True, slots=True)
class BulkResults:
    """Results of a bulk command: the ids of the changed runs, and an error message for each other id."""

    done: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)


def apply_to_each(ids: Iterable[str], command: Callable[[str], object]) -> BulkResults:
    """Apply a command to each run, one after another. Repeated ids are handled once."""
    results = BulkResults()
    for id in dict.fromkeys(ids):
        try:
            command(id)
        except RequestRefused as refused:
            results.errors[id] = refused.message
        except Exception as error:
            if is_transient(error):
                log.warning("bulk_item_interrupted", extra={"run_id": id[:64], "why": describe_transient(error)})
                discard_broken_connection()
                results.errors[id] = f"{describe_transient(error)} Send the request again."
                continue
            log.exception("bulk_item_failed", extra={"run_id": id[:64]})
            results.errors[id] = "Internal error. See the server log."
        else:
            results.done.append(id)
    return results
