"""The loop of a sweep: each item is handled by itself, and a failure does not stop the others."""

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from django.db import close_old_connections

from .. import clock, conf, fault_points, process_state
from ..core.errors import NotFound
from ..process_state import Slot
from ..store.overdue_items import growing_delay_ms
from ..store.statements import is_in_transaction
from ..telemetry.log_context import log_context
from ..transient_errors import is_transient

log = logging.getLogger(__name__)

Item = TypeVar("Item")
PutOff = Callable[[Item, str], None]
"""Puts off an item in its rows, for longer after each failure, and stores the error for operators."""
MAX_REMEMBERED = 10_000

_failed: Slot[dict[tuple[str, str], tuple[int, int]]] = process_state.slot(dict)
"""Items without rows of their own to be put off: their failures, and the time of the next try in milliseconds."""


def handle_each(found: Iterable[Item], handle: Callable[[Item], Any], put_off: PutOff[Item] | None = None) -> int:
    """Handle each item. Returns how many items were handled.

    A failure is logged and does not stop the loop. The item is tried again after growing delays. The line of a
    transient error has no traceback: during an outage, every item fails.
    """
    handled = 0
    for item in found:
        with log_context("sweep_item", item=str(item)):
            handled += _try_handle(item, handle, put_off)
    return handled


def _try_handle(item: Item, handle: Callable[[Item], Any], put_off: PutOff[Item] | None) -> bool:
    place = f"{handle.__module__}.{getattr(handle, '__qualname__', '')}", str(item)
    tries, next_at = _failed.value.get(place, (0, 0))
    if next_at > clock.now():
        return False
    try:
        fault_points.reach("sweep-item")
        handle(item)
    except NotFound:
        _failed.value.pop(place, None)
        return False
    except Exception as error:
        if conf.raises_in_sweeps:
            raise
        _log_failure("sweep_item_failed", error)
        if not is_in_transaction():
            # The other items need a connection that works.
            close_old_connections()
        if put_off is None or not _is_put_off(item, error, put_off):
            _remember(place, tries + 1)
        return False
    _failed.value.pop(place, None)
    return True


def _is_put_off(item: Item, error: Exception, put_off: PutOff[Item]) -> bool:
    try:
        put_off(item, f"{type(error).__name__}: {error}")
    except Exception as failure:
        if not (is_transient(error) and is_transient(failure)):
            _log_failure("sweep_item_not_put_off", failure)
        return False
    return True


def _log_failure(event: str, error: Exception) -> None:
    log.error(event, exc_info=not is_transient(error), extra={"cause": f"{type(error).__name__}: {error}"[:500]})


def _remember(place: tuple[str, str], tries: int) -> None:
    failed = _failed.value
    if len(failed) >= MAX_REMEMBERED:
        failed.clear()
    failed[place] = tries, clock.now() + growing_delay_ms(tries)
