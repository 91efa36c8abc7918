"""A run whose output is known already is over before its first step."""

from collections.abc import Iterator

from ..caching import find_cached_output
from ..decision_context import DecisionContext
from ..effects import Effect
from ..snapshot import Run
from .finish_run import end_run


def use_cached_output(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """What another run with the same key has come to is its output; one that is begun anew does its work."""
    if run.has_begun or run.revision or (known := find_cached_output(run, ctx)) is None:
        return
    source, output = known
    reason = f"Its output is the one of run {source}, which had the same cache key."
    yield from end_run(run, ctx, now, "complete", reason, output=dict(output), needs_whole=False)
