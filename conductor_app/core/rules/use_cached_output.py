"""Complete a run before its first step if its output is cached."""

from collections.abc import Iterator

from ..caching import find_cached_output
from ..decision_context import DecisionContext
from ..effects import Effect
from ..snapshot import Run
from .finish_run import end_run


def use_cached_output(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects that complete a new run with a cached output. A restarted run is executed."""
    if run.has_begun or run.revision or (cached := find_cached_output(run, ctx)) is None:
        return
    source, output = cached
    reason = f"Output reused from run {source}, which has the same cache key."
    yield from end_run(run, ctx, now, "complete", reason, output=dict(output), needs_whole=False)
