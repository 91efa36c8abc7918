"""Which steps stand beside one another, and which inside which, as a document says it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .document.layout import try_catch_parts

Document = Mapping[str, Any]


class StepLevel(NamedTuple):
    """A step among its neighbours: those of the same sequence that come before it, and those that come after it."""

    before: tuple[str, ...]
    ref: str
    after: tuple[str, ...]


def step_sequences(step: Document) -> Iterator[Sequence[Document]]:
    """The sequences of steps inside a step: branches, cases, the body of a loop."""
    if step.get("type") in ("SWITCH", "DECISION"):
        yield from (tasks or () for tasks in (step.get("decisionCases") or {}).values())
        yield step.get("defaultCase") or ()
    elif step.get("type") == "FORK_JOIN":
        yield from step.get("forkTasks") or ()
    elif step.get("type") in ("DO_WHILE", "FOR_EACH"):
        yield step.get("loopOver") or ()
    elif step.get("type") == "TRY_CATCH":
        yield from (tasks for _name, tasks in try_catch_parts(step))


def part_with(step: Document, ref: str) -> str | None:
    """The name of the part of a TRY_CATCH that holds a step with this reference, however deep."""
    if step.get("type") != "TRY_CATCH":
        return None
    return next((name for name, tasks in try_catch_parts(step) if path_to_step(tasks, ref)), None)


def phase_in(step: Document, ref: str) -> int | None:
    """The phase in which a TRY_CATCH does what is inside it under this reference; None for any other step."""
    part = part_with(step, ref)
    return None if part is None else {"try": 1, "finally": 3}.get(part, 2)


def references_inside(step: Document) -> tuple[str, ...]:
    """The references of all steps inside a step, in the order of the document."""
    found: list[str] = []
    for tasks in step_sequences(step):
        for task in tasks:
            found += [_ref(task), *references_inside(task)]
    return tuple(found)


def path_to_step(tasks: Sequence[Document], ref: str) -> tuple[StepLevel, ...]:
    """The way to a step, outermost level first; the last one is its own. Empty where there is no such step."""
    refs = tuple(map(_ref, tasks))
    for place, task in enumerate(tasks):
        level = StepLevel(refs[:place], refs[place], refs[place + 1 :])
        if refs[place] == ref:
            return (level,)
        for inner in step_sequences(task):
            if rest := path_to_step(inner, ref):
                return (level, *rest)
    return ()


def _ref(task: Document) -> str:
    return str(task.get("taskReferenceName"))
