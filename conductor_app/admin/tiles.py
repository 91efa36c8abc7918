"""Tiles: parts of a page that may fail without affecting the other parts."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.urls import reverse

from ..telemetry import log_context

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OverviewTile:
    """One tile: its label, its template and the context of the template."""

    name: str
    template: str
    context: dict[str, Any] = field(default_factory=dict)
    is_broken: bool = False


def build_tile(name: str, template: str, build_context: Callable[[], dict[str, Any]]) -> OverviewTile:
    """Return the tile. If its context cannot be built, the tile shows an error with the request id."""
    try:
        return OverviewTile(name, template, build_context())
    except Exception:
        log.exception("tile_failed", extra={"tile": template})
        error_context = {"what": name, "request_id": log_context.request_id(), "retry": reverse("admin:index")}
        return OverviewTile(name, "ops/states/error.html", error_context, is_broken=True)
