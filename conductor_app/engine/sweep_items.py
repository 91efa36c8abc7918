"""The loop of a sweep: each item is handled by itself, and a failure does not stop the others."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

from .. import conf, fault_points
from ..core.errors import NotFound
from ..telemetry.log_context import log_context

log = logging.getLogger(__name__)


def handle_each(found: Iterable[Any], handle: Callable[..., Any]) -> int:
    """Handle each item. Failures are logged and do not stop the loop. Returns how many items were handled."""
    handled = 0
    for item in found:
        with log_context("sweep_item", item=str(item)):
            handled += _try_handle(item, handle)
    return handled


def _try_handle(item: object, handle: Callable[..., Any]) -> bool:
    try:
        fault_points.reach("sweep-item")
        handle(item)
    except NotFound:
        return False
    except Exception:
        if conf.raises_in_sweeps:
            raise
        log.exception("sweep_item_failed")
        return False
    return True
