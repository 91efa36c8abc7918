"""Tiles: parts of a page of which each may fail by itself; what stands beside it stays."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.urls import reverse

from ..telemetry import log_context

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OverviewTile:
    """One part: its name for people, the template that shows it, and what it shows."""

    name: str
    template: str
    context: dict[str, Any] = field(default_factory=dict)
    is_broken: bool = False


def build_tile(name: str, template: str, build_context: Callable[[], dict[str, Any]]) -> OverviewTile:
    """The tile; one that cannot be made says so, with the id under which the log says why."""
    try:
        return OverviewTile(name, template, build_context())
    except Exception:
        log.exception("tile_failed", extra={"tile": template})
        error_context = {"what": name, "request_id": log_context.request_id(), "retry": reverse("admin:index")}
        return OverviewTile(name, "ops/states/error.html", error_context, is_broken=True)
