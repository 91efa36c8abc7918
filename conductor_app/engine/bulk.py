"""One command on many runs: each in its own transaction, and an answer for each."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..core.errors import RequestRefused

log = logging.getLogger(__name__)

MOST = 1000
"""Runs that one request may name (api §1.3)."""


@dataclass(frozen=True, slots=True)
class BulkResults:
    """What came of each: the ids where it was done, and why it was not where it was refused."""

    done: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)


def apply_to_each(ids: Iterable[str], command: Callable[[str], object]) -> BulkResults:
    """Do it to each, one after another; an id that is named twice is one run, and has one answer."""
    results = BulkResults()
    for id in dict.fromkeys(ids):
        try:
            command(id)
        except RequestRefused as refused:
            results.errors[id] = refused.message
        except Exception:
            log.exception("bulk_item_failed", extra={"run_id": id[:64]})
            results.errors[id] = "It went wrong; the server's log says how."
        else:
            results.done.append(id)
    return results
