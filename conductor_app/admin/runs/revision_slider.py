"""The slider over the revisions of a run: links to the neighbors, the decision of the selected one."""

from typing import Any

from ...insight.runs.history_replay import RunAtRevision
from ..badges import exact_time, render_badge
from .run_view_model import RunViewModel


def revision_slider(view_model: RunViewModel, past: RunAtRevision | None) -> dict[str, Any]:
    """Return the context of the slider. `past`: the run at the selected revision; None if it is the newest one."""
    newest, query = view_model.run.revision, view_model.query
    wanted = query.number("revision")
    revision = newest if wanted is None else min(max(wanted, 1), newest)
    ways = {"oldest": 1, "older": revision - 1, "newer": revision + 1, "newest_revision": newest}
    return {
        "past": past,
        "revision": revision,
        "last_revision": newest,
        "revision_at": exact_time(past.at) if past else "",
        "revision_badge": render_badge(past.status) if past else "",
        "is_lost": past is None and revision < newest,
        "parameters": query.current_choices("revision", "before", "page").items(),
        "close_address": query.address(revision=None),
        "navigation": {
            name: query.address(revision=number) if 1 <= number <= newest and number != revision else ""
            for name, number in ways.items()
        },
    }
