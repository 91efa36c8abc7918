"""Steps that can be put around others: a fork, a loop, and a TRY_CATCH step."""

from collections.abc import Callable, Mapping
from typing import Any

from ...step_types.do_while import DoWhile
from ...step_types.fork_join import ForkJoin
from ...step_types.join import Join
from ...step_types.try_catch import TryCatch
from .step_places import reference_of

Steps = list[Any]
FreeReference = Callable[[str], str]
"""A function that returns the given reference, with a number if another step has it."""
DEFAULT_ITERATIONS = 3


def loop_condition(ref: str, times: int) -> str:
    """Return the condition of a loop that ends after a number of iterations."""
    return f"if ($.{ref}['iteration'] < {times}) {{ true; }} else {{ false; }}"


def step_of(type: str, ref: str, **fields: Any) -> dict[str, Any]:
    """Return the document of a step."""
    return {"name": ref, "taskReferenceName": ref, "type": type, **fields}


def _wrap_in_fork(steps: Steps, free: FreeReference) -> Steps:
    fork = step_of(ForkJoin.type, free("fork"), forkTasks=[steps, []])
    return [fork, step_of(Join.type, free("join"), joinOn=[ref for ref in [reference_of(steps[-1])] if ref])]


def _wrap_in_loop(steps: Steps, free: FreeReference) -> Steps:
    condition = loop_condition(ref := free("loop"), DEFAULT_ITERATIONS)
    return [step_of(DoWhile.type, ref, loopCondition=condition, loopOver=steps)]


def _wrap_in_try(steps: Steps, free: FreeReference) -> Steps:
    # A case without conditions handles every failure.
    return [step_of(TryCatch.type, free("try"), tryTasks=steps, catchCases=[{"match": {}, "tasks": []}])]


WRAPPERS: Mapping[str, Callable[[Steps, FreeReference], Steps]] = {
    "fork": _wrap_in_fork,
    "loop": _wrap_in_loop,
    "try": _wrap_in_try,
}
