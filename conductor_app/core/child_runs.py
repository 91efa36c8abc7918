"""Construction of runs before their first decision."""

from typing import Any

from .breakpoints import Breakpoint, live_breakpoints, with_breakpoints
from .effects import StartRun
from .errors import StepRefused
from .fairness import share_of_start
from .primitives import fast_replace
from .snapshot import Run
from .states import RUNNING
from .timers import next_run_timer
from .trace_context import traceparent_below

CHAIN_MS = 1_000
"""The age of a run up to which a run that it starts, without waiting for it, is one level below it."""
EVENT_CHAIN_MS = 10_000
"""The same for a run that starts because of an event, which may wait in a queue before it is received."""


def new_child_run(effect: StartRun, parent: Run, now: int) -> Run:
    """Return the run that a StartRun effect creates."""
    waits = bool(effect.parent_attempt_id)
    return set_first_timer(
        Run(
            id=effect.id,
            definition=effect.definition,
            status=RUNNING,
            created_at=now,
            input=effect.input,
            correlation_id=effect.correlation_id,
            priority=effect.priority,
            domains=effect.domains,
            starter_id=parent.starter_id,
            parent_id=parent.id if waits else "",
            parent_attempt_id=effect.parent_attempt_id,
            root_id=(parent.root_id or parent.id) if waits else "",
            depth=parent.depth + 1 if waits or effect.is_failure_workflow else _depth_of_started(parent, now),
            watched_as=parent.watched_as if waits else "",
            watched_until=parent.watched_until if waits else 0,
            debug=_child_debug(effect, parent, now),
            traceparent=traceparent_below(parent.traceparent, effect.parent_attempt_id or parent.id),
            fairness=share_of_start(
                effect.definition, effect.input, effect.id, effect.correlation_id, inherited=parent.fairness
            ),
            variables=dict(effect.definition.document.get("variables") or {}),
        ),
        now,
    )


def _depth_of_started(parent: Run, now: int) -> int:
    """Return the depth of a run that START_WORKFLOW starts.

    A run that starts another at once belongs to its chain, which may have no end. One that starts its successor later,
    such as after each page of a list or each day, begins a new chain.
    """
    return parent.depth + 1 if now - parent.created_at < CHAIN_MS else 0


def depth_after_event(publisher_depth: int, created_at: int, received_at: int, limit: int) -> int:
    """Return the depth of a run that an event starts, by the run that published it. `limit`: 0 for none.

    Raises:
        StepRefused: when the publisher is the last run of a chain of the maximum length.
    """
    if received_at - created_at >= EVENT_CHAIN_MS:
        return 0
    if limit and publisher_depth >= limit:
        raise StepRefused(_chain_reason(publisher_depth, EVENT_CHAIN_MS, "Perhaps an event starts its own publisher"))
    return publisher_depth + 1


def _child_debug(effect: StartRun, parent: Run, now: int) -> dict[str, Any]:
    """Return the breakpoints of the new run: those of its definition, and one before its first step for a step into."""
    found = live_breakpoints(effect.definition.breakpoints, now)
    into = parent.debug.get("into")
    if into and into["attempt"] == effect.parent_attempt_id:
        found.append(Breakpoint(**into["breakpoint"]))
    return with_breakpoints({}, found)


def set_first_timer(run: Run, now: int) -> Run:
    """Return the run with its timer set to its start, if that is in the future, or to its timeout."""
    return fast_replace(run, wake_at=next_run_timer(run, now))


def require_depth(run: Run) -> None:
    """Raise StepRefused unless the run may start a run below it."""
    limit = run.definition.limits.max_depth
    if limit and run.depth >= limit:
        raise StepRefused(
            f"Sub-workflows are nested {run.depth} levels deep, which is the maximum (MAX_WORKFLOW_DEPTH). "
            "Perhaps a workflow starts itself without end."
        )


def require_depth_to_start(run: Run, now: int) -> None:
    """Check that the run may start a run that it does not wait for.

    Raises:
        StepRefused: when it is the last one of a chain of the maximum length, whose runs each started the next at once.
    """
    limit = run.definition.limits.max_depth
    if limit and run.depth >= limit and _depth_of_started(run, now):
        raise StepRefused(_chain_reason(run.depth, CHAIN_MS, "Perhaps a workflow starts itself"))


def _chain_reason(depth: int, within_ms: int, cause: str) -> str:
    return (
        f"{depth} workflows have started one another, each less than {within_ms // 1000} s after its own start, "
        f"which is the maximum (MAX_WORKFLOW_DEPTH). {cause} without end."
    )
