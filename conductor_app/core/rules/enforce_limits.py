"""End a run that has created more tasks than the maximum, because it would never end."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..effects import Effect
from ..snapshot import Run
from .finish_run import end_run


def enforce_limits(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects that fail a run with too many tasks."""
    limit = run.definition.limits.max_tasks
    if limit and run.is_open and run.next_seq > limit + 1:
        reason = f"The workflow has created {limit} tasks, which is the maximum (MAX_TASKS_PER_WORKFLOW)."
        yield from end_run(run, ctx, now, "fail", reason)
