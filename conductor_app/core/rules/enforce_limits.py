"""End a run that has created more tasks, or taken more decisions, than the maximum: it would never end."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..effects import Effect
from ..snapshot import Run
from .finish_run import end_run


def enforce_limits(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects that fail a run with too many tasks or with too long a history."""
    if run.is_open and (reason := _exceeded_limit(run)):
        yield from end_run(run, ctx, now, "fail", reason)


def _exceeded_limit(run: Run) -> str:
    """Return which limit the run exceeds, or an empty text."""
    limits = run.definition.limits
    if limits.max_tasks and run.next_seq > limits.max_tasks + 1:
        return f"The workflow has created {limits.max_tasks} tasks, which is the maximum (MAX_TASKS_PER_WORKFLOW)."
    # Each decision increases the revision and writes one entry, so the limit needs no statement of its own.
    if limits.max_history and run.revision >= limits.max_history:
        return (
            f"The history of the workflow has {limits.max_history} entries, which is the maximum "
            "(MAX_HISTORY_ENTRIES). Start a new workflow for the remaining work."
        )
    return ""
