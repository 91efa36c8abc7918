"""Configuration of Python's garbage collector for long-lived processes."""

import gc
from typing import Any


def tune_garbage_collection(**_: Any) -> None:
    """Exclude all existing objects from garbage collection, and collect less often.

    Requests leave few reference cycles. Collections with the default threshold take 4 % of the time of a report.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
