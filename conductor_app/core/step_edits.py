"""Insert, move, wrap, delete, rename and replace steps of a workflow document.

A step is named by its path, a place for it by the path that it will have. A fork and its join are moved, wrapped and
deleted together. A join that waits for the last step of each branch still does so after an edit.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...errors import Invalid
from ...step_structure import Document, Flow, structure_of_step
from .reference_edits import drop_references, rename_references
from .step_places import (
    Keys,
    StepSequence,
    find_place,
    find_step,
    reference_of,
    references_of,
    replace_at,
    replace_steps,
    sequences_of,
)
from .wrappers import WRAPPERS

RUN = "workflow"
"""The name that means the run itself in expressions."""


@dataclass(frozen=True, slots=True)
class StepEdit:
    """The edited document. `path`: the step to select next. `removed`: paths of values that read deleted steps."""

    document: dict[str, Any]
    path: str = ""
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _ForkWithJoin:
    join: Keys
    ends: list[str]
    joined: Any


def insert_steps(document: Document, place: str, steps: list[dict[str, Any]]) -> StepEdit:
    """Insert steps at a place. Their references get a number if they are in use.

    Raises:
        NotFound: when there is no such place.
        Invalid: when the place is between a fork and its join.
    """
    sequence, index = find_place(document, place)
    inserted = _with_free_references(steps, references_of(document))
    return _finish(document, _insert(document, sequence, index, inserted), f"{sequence.path}[{index}]")


def move_step(document: Document, path: str, place: str) -> StepEdit:
    """Move a step to a place of the unchanged document.

    Raises:
        NotFound: when there is no such step or place.
        Invalid: when the place is inside the step, or between a fork and its join.
    """
    source, index = find_step(document, path)
    begin, end = source.unit(index)
    target, position = find_place(document, place)
    if any(target.keys[: len(source.keys) + 1] == (*source.keys, own) for own in range(begin, end)):
        raise Invalid("A step cannot be moved into itself.")
    rest = replace(source, steps=[*source.steps[:begin], *source.steps[end:]])
    without = replace_steps(document, source, rest.steps)
    if target.keys == source.keys:
        sequence, position = rest, position if position <= begin else max(position - (end - begin), begin)
    else:
        keys = _shift_keys(target.keys, source.keys, begin, end - begin)
        sequence = next(each for each in sequences_of(without) if each.keys == keys)
    moved = _insert(without, sequence, position, source.steps[begin:end])
    return _finish(document, moved, f"{sequence.path}[{position + index - begin}]")


def delete_step(document: Document, path: str) -> StepEdit:
    """Delete a step with the steps inside it, and remove all references to them.

    Raises:
        NotFound: when there is no such step.
    """
    sequence, index = find_step(document, path)
    begin, end = sequence.unit(index)
    remaining = replace_steps(document, sequence, [*sequence.steps[:begin], *sequence.steps[end:]])
    refs = set(references_of({"tasks": sequence.steps[begin:end]})) - set(references_of(remaining))
    realigned = _realign_joins(document, remaining)
    cleared, removed = drop_references(realigned, refs)
    return StepEdit(cleared, removed=tuple(removed))


def wrap_step(document: Document, path: str, kind: str) -> StepEdit:
    """Put a step into a new one: `fork`, `loop` or `try`.

    Raises:
        NotFound: when there is no such step.
        Invalid: when there is no wrapper of this kind.
    """
    if kind not in WRAPPERS:
        raise Invalid(f"A step can be wrapped in {', '.join(WRAPPERS)}, not {kind[:40]!r}.")
    sequence, index = find_step(document, path)
    begin, end = sequence.unit(index)
    in_use = references_of(document)
    wrapped = WRAPPERS[kind](sequence.steps[begin:end], lambda ref: _free_reference(ref, in_use))
    changed = replace_at(document, sequence.keys, [*sequence.steps[:begin], *wrapped, *sequence.steps[end:]])
    return _finish(document, changed, f"{sequence.path}[{begin}]")


def rename_step(document: Document, path: str, ref: str) -> StepEdit:
    """Give a step another reference, and rename all references to it.

    If another step has the same reference, expressions are not changed, because they may mean that one.

    Raises:
        NotFound: when there is no such step.
        Invalid: when the reference is not valid, or another step has it.
    """
    sequence, index = find_step(document, path)
    old, others = reference_of(sequence.steps[index]), references_of(document)
    if ref == old:
        return StepEdit(dict(document), path)
    _require_valid_reference(ref, others)
    is_unique = bool(old) and others.count(old) == 1
    renamed = rename_references(document, {old: ref}) if is_unique else dict(document)
    return StepEdit(replace_at(renamed, (*sequence.keys, index, "taskReferenceName"), ref), path)


def replace_step(document: Document, path: str, step: dict[str, Any]) -> StepEdit:
    """Replace the document of a step, which keeps its reference.

    Raises:
        NotFound: when there is no such step.
    """
    sequence, index = find_step(document, path)
    return _finish(document, replace_at(document, (*sequence.keys, index), step), path)


def _require_valid_reference(ref: str, others: Collection[str]) -> None:
    if not ref.strip():
        raise Invalid("Enter a reference.")
    if ref == RUN:
        raise Invalid(f"`{RUN}` means the run itself in expressions. Enter another reference.")
    if any(sign in ref for sign in ".[]{}$'\" \t\n"):
        raise Invalid(f"The reference {ref[:80]!r} contains a character that expressions cannot read.")
    if ref in others:
        raise Invalid(f"The reference `{ref}` is used by another step.")


def _insert(document: Document, sequence: StepSequence, index: int, steps: list[Any]) -> dict[str, Any]:
    if not sequence.can_insert(index):
        raise Invalid("A JOIN must directly follow its fork. Select another place.")
    return replace_at(document, sequence.keys, [*sequence.steps[:index], *steps, *sequence.steps[index:]])


def _finish(before: Document, after: dict[str, Any], path: str) -> StepEdit:
    return StepEdit(_realign_joins(before, after), path)


def _shift_keys(keys: Keys, removed_from: Keys, index: int, count: int) -> Keys:
    """Return the keys of a sequence after steps before it, in a sequence around it, have been removed."""
    depth = len(removed_from)
    if keys[:depth] != removed_from or len(keys) == depth:
        return keys
    place = keys[depth]
    return (*keys[:depth], place - count, *keys[depth + 1 :]) if isinstance(place, int) and place > index else keys


def _with_free_references(steps: list[Any], taken: Collection[str]) -> list[Any]:
    """Return new steps whose references are not in use."""
    in_use, names = set(taken), {}
    for ref in references_of({"tasks": steps}):
        names[ref] = _free_reference(ref, in_use)
        in_use.add(names[ref])
    renames = {old: new for old, new in names.items() if old != new}
    return _rename_steps(rename_references({"tasks": steps}, renames)["tasks"], renames) if renames else steps


def _free_reference(ref: str, in_use: Collection[str]) -> str:
    number, free = 2, ref
    while free in in_use:
        free, number = f"{ref}_{number}", number + 1
    return free


def _rename_steps(steps: list[Any], names: Mapping[str, str]) -> list[Any]:
    document: dict[str, Any] = {"tasks": steps}
    for sequence in list(sequences_of(document)):
        for index, step in enumerate(sequence.steps):
            old = reference_of(step)
            if old in names:
                keys = (*sequence.keys, index)
                document = replace_at(document, (*keys, "taskReferenceName"), names[old])
                if step.get("name") == old and structure_of_step(step).flow is not Flow.LEAF:
                    document = replace_at(document, (*keys, "name"), names[old])
    return document["tasks"]


def _realign_joins(before: Document, after: dict[str, Any]) -> dict[str, Any]:
    """Return the document with joins that wait for the current ends of their branches, if they did so before."""
    old = dict(_forks_with_joins(before))
    for ref, pair in _forks_with_joins(after):
        if ref in old and isinstance(pair.joined, list):
            joined = _realign(pair.joined, old[ref], pair.ends)
            if joined != pair.joined:
                after = replace_at(after, (*pair.join, "joinOn"), joined)
    return after


def _realign(joined: list[Any], old: _ForkWithJoin, ends: list[str]) -> list[Any]:
    if joined != old.joined:
        return joined
    if set(map(str, joined)) == set(filter(None, old.ends)):
        current = list(dict.fromkeys(filter(None, ends)))
        return joined if set(current) == set(map(str, joined)) else current
    if len(old.ends) != len(ends):
        return joined
    moved = {was: now for was, now in zip(old.ends, ends, strict=True) if was and now}
    return [moved.get(ref, ref) if isinstance(ref, str) else ref for ref in joined]


def _forks_with_joins(document: Document) -> Iterator[tuple[str, _ForkWithJoin]]:
    for sequence in sequences_of(document):
        for index, step in enumerate(sequence.steps):
            begin, end = sequence.unit(index)
            if begin != index or end - begin != 2 or structure_of_step(step).flow is not Flow.FORK:
                continue
            ends = [reference_of(body.steps[-1]) if body.steps else "" for body in structure_of_step(step).bodies(step)]
            join = sequence.steps[begin + 1]
            yield reference_of(step), _ForkWithJoin((*sequence.keys, begin + 1), ends, join.get("joinOn"))
