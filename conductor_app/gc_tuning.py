"""Python's search for objects that hold one another, as long-lived processes want it."""

import gc
from typing import Any


def tune_garbage_collection(**_: Any) -> None:
    """What is loaded by now stays, and is not taken apart at the end either.

    A request leaves no circles worth a search for each 700 objects: 4 % of a report.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
