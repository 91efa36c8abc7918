"""Python's search for objects that hold one another, as long-lived processes want it."""

import gc
from typing import Any


def tune_garbage_collection(**_: Any) -> None:
    """Exclude all objects that exist now from garbage collection, also at exit.

    Requests leave no reference cycles worth a collection per 700 objects, which cost 4 % of a report.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
