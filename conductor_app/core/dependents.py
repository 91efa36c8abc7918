"""Find the joins and loops that started before the end of a step and may wait for it."""

from collections.abc import Callable, Iterable
from functools import lru_cache

from .definition import Definition, Key, Step
from .step_structure import Flow, structure_of

StepLookup = Callable[[str], Step | None]


@lru_cache(maxsize=20_000)
def dependents_of(definition: Definition, ref: str) -> frozenset[str]:
    """Return the references of the steps that may wait for this step of the definition."""
    return dependents_among(definition.step, ref)


def dependents_among(find: StepLookup, ref: str) -> frozenset[str]:
    """Return the references of the steps that may wait for `ref`, looking up steps with `find`.

    A following step may end as soon as it receives control, and so may the steps after a join or loop that waited.
    Steps that control can reach only from here have not started, so they do not wait.
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
    """Return where control goes from a step; a loop that started earlier passes control on only."""
    heads = step.heads if begins or structure_of(step.type).flow is Flow.CHOICE else ()
    return filter(None, (*heads, step.follower))


def dependent_keys(refs: Iterable[str], find: StepLookup, iteration_path: tuple[int, ...]) -> Iterable[Key]:
    """Yield the keys of the waiting steps, as seen from a task with this iteration path."""
    for ref in refs:
        step = find(ref)
        yield Key(ref, iteration_path[: len(step.loops)] if step else iteration_path)
