"""Named points of the code at which a test of faults may end or stop the process.

A server has no handler, so that reaching a point costs a comparison. Only the settings of `qa/faults` set one.
"""

from collections.abc import Callable

from . import process_state
from .process_state import Wiring

POINTS = (
    "before-commit", "before-delivery", "in-delivery", "claimed", "reported", "sweep-item", "leadership-taken",
    "outbox-claimed", "event-published", "work-performed",
)  # fmt: skip
"""All points. `before-delivery` and `in-delivery` are between the commit of a message and its handling. At `claimed`
and `reported` the change is committed, but the worker has no reply yet."""

_handler: Wiring[Callable[[str], None] | None] = process_state.wiring(None)


def reach(point: str) -> None:
    """Call the handler, if there is one."""
    if (handler := _handler.value) is not None:
        handler(point)


def set_handler(handler: Callable[[str], None] | None) -> None:
    """Set the function that is called at each point."""
    _handler.value = handler
