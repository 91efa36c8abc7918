"""Who may be waiting for a step: the joins and loops, begun before its end, that its end may move."""

from collections.abc import Callable, Iterable
from functools import lru_cache

from .definition import Definition, Key, Step
from .step_structure import Flow, structure_of

StepLookup = Callable[[str], Step | None]


@lru_cache(maxsize=20_000)
def dependents_of(definition: Definition, ref: str) -> frozenset[str]:
    """The references of what may wait for this step of the definition."""
    return dependents_among(definition.step, ref)


def dependents_among(find: StepLookup, ref: str) -> frozenset[str]:
    """The same among the steps that `find` finds.

    What follows the step may be over as soon as control comes, and so may what follows a join or a loop that waited.
    Whatever control can only reach from here has not begun, so it does not wait.
    """
    step = find(ref)
    waits = {ref, *(step.loops if step else ())}
    later: set[str] = set()
    passed: set[str] = set()
    to_pass = list(waits)
    while to_pass:
        step = find(to_pass.pop())
        if step is None or step.ref in passed:
            continue
        passed.add(step.ref)
        followers = {*_next_steps(step, begins=step.ref not in waits)}
        later |= followers
        waits |= {*step.joined_by}
        to_pass += [*followers, *step.joined_by]
    return frozenset(waits - later - {ref})


def _next_steps(step: Step, begins: bool) -> Iterable[str]:
    """Where control goes from a step; a loop that has begun already only passes it on."""
    heads = step.heads if begins or structure_of(step.type).flow is Flow.CHOICE else ()
    return filter(None, (*heads, step.follower))


def dependent_keys(refs: Iterable[str], find: StepLookup, iteration_path: tuple[int, ...]) -> Iterable[Key]:
    """The keys of what waits, seen from a task in this turn."""
    for ref in refs:
        step = find(ref)
        yield Key(ref, iteration_path[: len(step.loops)] if step else iteration_path)
