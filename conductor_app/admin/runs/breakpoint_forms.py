"""Breakpoints in lists and forms, for the page of a run and for that of a definition."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.access_types import DEBUG, EXECUTE, PERMISSION_BY_RIGHT
from ...core.breakpoints import Breakpoint
from ...engine.runs.debugging import BreakpointRequest
from ..badges import relative_time
from ..form_parsing import parse_number

DEBUG_PERMISSION = PERMISSION_BY_RIGHT[EXECUTE, DEBUG]
PLACE_LABELS = {
    "before": gettext_lazy("before the step"),
    "after": gettext_lazy("after its completion"),
    "failure": gettext_lazy("after a failure"),
}
MAX_STEPS = 500


def breakpoints_context(found: Iterable[Breakpoint], steps: Iterable[str], address: str) -> dict[str, Any]:
    """Return the context of `ops/breakpoints.html`. `address`: where its forms are sent; `steps`: to choose from."""
    return {
        "breakpoints": [
            {"found": each, "place": PLACE_LABELS[each.place], "until": relative_time(each.until)} for each in found
        ],
        "places": PLACE_LABELS.items(),
        "steps": list(steps)[:MAX_STEPS],
        "debug_address": address,
    }


def parse_breakpoint_form(form: Mapping[str, str]) -> BreakpointRequest:
    """Return the breakpoint of a submitted form.

    Raises:
        Invalid: when the number of minutes is no number.
    """
    minutes = parse_number(form["minutes"], _("number of minutes")) if form.get("minutes", "").strip() else 0
    return BreakpointRequest(form.get("ref", ""), form.get("place", ""), form.get("condition", ""), minutes)
