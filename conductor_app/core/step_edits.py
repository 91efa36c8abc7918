"""Insert, move, wrap, delete, rename and replace steps of a workflow document.

A step is named by its path, such as `tasks[0].loopOver[1]`, a place for it by the path that it will have. A fork and
its join are moved, wrapped and deleted together. A join that waits for the last step of each branch still does so
after an edit.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .definition import (
    MAX_DEPTH,
    Body,
    Document,
    Flow,
    as_steps,
    body_at,
    map_bodies,
    replace_at,
    structure_of_step,
    walk,
)
from .document.reading import extract_definitions, restore_definitions
from .errors import Invalid, NotFound
from .expressions.json_text import replace_texts
from .expressions.templates import Expression, parse_template
from .primitives import JsonValue
from .step_types.base import DEFAULT_ITERATIONS, loop_condition, step_of
from .step_types.forks import ForkJoin, Join
from .step_types.loops import DoWhile
from .step_types.try_catch import TryCatch

Keys = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class StepSequence:
    """A list of steps in a document, which may be missing there. `owner`: reference of the step that contains it.

    `is_optional`: the document leaves the list out if it is empty.
    """

    path: str
    keys: Keys
    steps: list[Any]
    owner: str = ""
    label: str = ""
    is_optional: bool = False

    def unit(self, index: int) -> tuple[int, int]:
        """Return the range of the steps that are edited together: a fork with its join, otherwise one step."""
        if self._is_fork(index) and self._ends_forks(index + 1):
            return index, index + 2
        if self._ends_forks(index) and self._is_fork(index - 1):
            return index - 1, index + 1
        return index, index + 1

    def can_insert(self, index: int) -> bool:
        """Return True if a step may be inserted before the index. Nothing may separate a fork from its join."""
        return not (self._is_fork(index - 1) and self._ends_forks(index))

    def _is_fork(self, index: int) -> bool:
        return (step := self._step(index)) is not None and structure_of_step(step).forks

    def _ends_forks(self, index: int) -> bool:
        return (step := self._step(index)) is not None and structure_of_step(step).ends_forks

    def _step(self, index: int) -> Document | None:
        step = self.steps[index] if 0 <= index < len(self.steps) else None
        return step if isinstance(step, Mapping) else None


@dataclass(frozen=True, slots=True)
class StepPlace:
    """A place for a new step. `after`: the reference before it; `owner`, `label`: the step and the body around it.

    `branch`: the number of the branch of a fork, from 1, or 0 elsewhere.
    """

    path: str
    after: str
    owner: str
    label: str
    branch: int = 0


Steps = list[Any]
FreeReference = Callable[[str], str]
"""A function that returns the given reference, with a number if another step has it."""

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
    joined: JsonValue


def insert_steps(document: Document, place: str, steps: list[dict[str, Any]]) -> StepEdit:
    """Insert steps at a place. Their references get a number if they are in use.

    Raises:
        Invalid: when the place is between a fork and its join.
    """
    sequence, index = _find_place(document, place)
    inserted = _with_free_references(steps, references_of(document))
    return _finish(document, _insert(document, sequence, index, inserted), f"{sequence.path}[{index}]")


def move_step(document: Document, path: str, place: str) -> StepEdit:
    """Move a step to a place of the unchanged document.

    Raises:
        Invalid: when the place is inside the step, or between a fork and its join.
    """
    source, index = find_step(document, path)
    begin, end = source.unit(index)
    target, position = _find_place(document, place)
    if any(target.keys[: len(source.keys) + 1] == (*source.keys, own) for own in range(begin, end)):
        raise Invalid("A step cannot be moved into itself.")
    rest = replace(source, steps=[*source.steps[:begin], *source.steps[end:]])
    without = _replace_steps(document, source, rest.steps)
    if target.keys == source.keys:
        sequence, position = rest, position if position <= begin else max(position - (end - begin), begin)
    else:
        keys = _shift_keys(target.keys, source.keys, begin, end - begin)
        sequence = next(each for each in _sequences_of(without) if each.keys == keys)
    moved = _insert(without, sequence, position, source.steps[begin:end])
    return _finish(document, moved, f"{sequence.path}[{position + index - begin}]")


def delete_step(document: Document, path: str) -> StepEdit:
    """Delete a step with the steps inside it, and remove all references to them."""
    sequence, index = find_step(document, path)
    begin, end = sequence.unit(index)
    remaining = _replace_steps(document, sequence, [*sequence.steps[:begin], *sequence.steps[end:]])
    refs = set(references_of({"tasks": sequence.steps[begin:end]})) - set(references_of(remaining))
    realigned = _realign_joins(document, remaining)
    cleared, removed = _drop_references(realigned, refs)
    return StepEdit(cleared, removed=tuple(removed))


def wrap_step(document: Document, path: str, kind: str) -> StepEdit:
    """Put a step into a new one: `fork`, `loop` or `try`.

    Raises:
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
        Invalid: when the reference is not valid, or another step has it.
    """
    sequence, index = find_step(document, path)
    old, others = reference_of(sequence.steps[index]), references_of(document)
    if ref == old:
        return StepEdit(dict(document), path)
    if not ref.strip():
        raise Invalid("Enter a reference.")
    if ref == RUN:
        raise Invalid(f"`{RUN}` means the run itself in expressions. Enter another reference.")
    if any(sign in ref for sign in ".[]{}$'\" \t\n"):
        raise Invalid(f"The reference {ref[:80]!r} contains a character that expressions cannot read.")
    if ref in others:
        raise Invalid(f"The reference `{ref}` is used by another step.")
    is_unique = bool(old) and others.count(old) == 1
    renamed = _rename_references(document, {old: ref}) if is_unique else dict(document)
    return StepEdit(replace_at(renamed, (*sequence.keys, index, "taskReferenceName"), ref), path)


def replace_step(document: Document, path: str, step: dict[str, Any]) -> StepEdit:
    """Replace the document of a step, which keeps its reference."""
    sequence, index = find_step(document, path)
    return _finish(document, replace_at(document, (*sequence.keys, index), step), path)


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
    return _rename_steps(_rename_references({"tasks": steps}, renames)["tasks"], renames) if renames else steps


def _free_reference(ref: str, in_use: Collection[str]) -> str:
    number, free = 2, ref
    while free in in_use:
        free, number = f"{ref}_{number}", number + 1
    return free


def _rename_steps(steps: list[Any], names: Mapping[str, str]) -> list[Any]:
    document: dict[str, Any] = {"tasks": steps}
    for sequence in list(_sequences_of(document)):
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
    for sequence in _sequences_of(document):
        for index, step in enumerate(sequence.steps):
            begin, end = sequence.unit(index)
            if begin != index or end - begin != 2 or structure_of_step(step).flow is not Flow.FORK:
                continue
            ends = [reference_of(body.steps[-1]) if body.steps else "" for body in structure_of_step(step).bodies(step)]
            join = sequence.steps[begin + 1]
            yield reference_of(step), _ForkWithJoin((*sequence.keys, begin + 1), ends, join.get("joinOn"))


DOTTED = re.compile(r"(\$\{\s*(?:\$\.)?|(?<![\w$])\$\.)([^\s.,\[\]{}()'\"$]+)(?=\s*[.\[}\])&|=<>!]|\s|$)")
QUOTED = re.compile(r"((?:\$\{\s*\$?|\$)\[\s*)(['\"])([^'\"\]]*)\2(?=\s*\])")
"""The first name of an expression, or of a path from `$` inside a filter: as a plain name, and in brackets."""
SCRIPT_NAME = re.compile(r"(?<=(?<![\w$])\$\.)[\w$]+")
PYTHON_NAME = re.compile(r"(?<![\w.'\"])[^\W\d]\w*")
"""A name that a script in JavaScript reads from `$`, and a name in Python."""
LISTS_OF_REFERENCES = ("joinOn", "defaultExclusiveJoinTask")


def _rename_references(document: Document, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the document with references renamed, except those of the steps themselves.

    Inline definitions of sub-workflows stay as they are: their expressions refer to the steps of the child run.
    """
    without, definitions = extract_definitions(document)
    renamed = replace_texts(without, lambda text: _rename_in_text(text, names))
    renamed = _edit_steps(renamed, lambda step: _rename_in_step(step, names))
    return restore_definitions(renamed, definitions)


def _drop_references(document: Document, refs: Collection[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the document without references to the given steps, and the paths of the values that read them.

    A member whose value is such an expression is removed; in a list it becomes null, and in a longer text it becomes
    empty.
    """
    without, definitions = extract_definitions(document)
    removed: list[str] = []
    cleared = _drop_in_value(without, refs, "", removed)
    cleared = _edit_steps(cleared, lambda step: _drop_in_step(step, refs))
    return restore_definitions(cleared, definitions), removed


def _edit_steps(document: dict[str, Any], edit: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    tasks = document.get("tasks")
    return {**document, "tasks": _edit_sequence(tasks, edit)} if isinstance(tasks, list) else document


def _edit_sequence(steps: list[Any], edit: Callable[[dict[str, Any]], dict[str, Any]]) -> list[Any]:
    edited = (edit(dict(step)) if isinstance(step, Mapping) else step for step in steps)
    inner = lambda body: _edit_sequence(body, edit)  # noqa: E731
    return [map_bodies(step, inner) if isinstance(step, Mapping) else step for step in edited]


def _rename_in_text(text: str, names: Mapping[str, str]) -> str:
    parts = parse_template(text).parts
    return "".join(part if isinstance(part, str) else _rename_in_expression(part.source, names) for part in parts)


def _rename_in_expression(source: str, names: Mapping[str, str]) -> str:
    dotted = DOTTED.sub(lambda found: found[1] + names.get(found[2], found[2]), source)
    return QUOTED.sub(lambda found: f"{found[1]}{found[2]}{names.get(found[3], found[3])}{found[2]}", dotted)


def _rename_in_step(step: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    for field in LISTS_OF_REFERENCES:
        if isinstance(step.get(field), list):
            step[field] = [names.get(ref, ref) if isinstance(ref, str) else ref for ref in step[field]]
    _edit_matches(step, lambda refs: [names.get(ref, ref) for ref in refs])
    structure, inputs = structure_of_step(step), step.get("inputParameters")
    own = inputs if isinstance(inputs, Mapping) else {}
    script = step.get(structure.script_field)
    read = {old: new for old, new in names.items() if old in structure.script_inputs(step) and old not in own}
    if read and isinstance(script, str):
        step[structure.script_field] = _rename_in_script(script, read, step.get("evaluatorType") == "python")
    return step


def _rename_in_script(script: str, names: Mapping[str, str], is_python: bool) -> str:
    if is_python:
        return PYTHON_NAME.sub(lambda found: names.get(found[0], found[0]), script)
    return QUOTED.sub(
        lambda found: f"{found[1]}{found[2]}{names.get(found[3], found[3])}{found[2]}",
        SCRIPT_NAME.sub(lambda found: names.get(found[0], found[0]), script),
    )


def _edit_matches(step: dict[str, Any], edit: Callable[[list[str]], list[str]]) -> None:
    """Change the references that the handlers of a TRY_CATCH step name."""
    cases = step.get("catchCases")
    if isinstance(cases, list):
        step["catchCases"] = [_edit_match(case, edit) for case in cases]


def _edit_match(case: Any, edit: Callable[[list[str]], list[str]]) -> Any:
    match = case.get("match") if isinstance(case, Mapping) else None
    if not isinstance(match, Mapping) or "taskRef" not in match:
        return case
    named = match["taskRef"]
    edited = edit([ref for ref in (named if isinstance(named, list) else [named]) if isinstance(ref, str)])
    others = {name: value for name, value in match.items() if name != "taskRef"}
    if not edited:
        return {**case, "match": others}
    return {**case, "match": {**others, "taskRef": edited if isinstance(named, list) else edited[0]}}


def _drop_in_step(step: dict[str, Any], refs: Collection[str]) -> dict[str, Any]:
    for field in LISTS_OF_REFERENCES:
        if isinstance(step.get(field), list):
            step[field] = [ref for ref in step[field] if not (isinstance(ref, str) and ref in refs)]
    _edit_matches(step, lambda named: [ref for ref in named if ref not in refs])
    return step


def _drop_in_value(value: Any, refs: Collection[str], path: str, removed: list[str]) -> Any:
    if isinstance(value, dict):
        members = ((key, inner, f"{path}.{key}" if path else str(key)) for key, inner in value.items())
        return dict(_keep_members(members, refs, removed))
    if isinstance(value, list):
        return [_drop_in_item(inner, refs, f"{path}[{index}]", removed) for index, inner in enumerate(value)]
    return _drop_in_item(value, refs, path, removed)


def _keep_members(members: Any, refs: Collection[str], removed: list[str]) -> Iterator[tuple[str, Any]]:
    for key, inner, path in members:
        if isinstance(inner, str) and _is_read_of(inner, refs):
            removed.append(path)
        else:
            yield key, _drop_in_value(inner, refs, path, removed)


def _drop_in_item(value: JsonValue, refs: Collection[str], path: str, removed: list[str]) -> Any:
    if not isinstance(value, str):
        return _drop_in_value(value, refs, path, removed) if isinstance(value, dict | list) else value
    if "${" not in value:
        return value
    if _is_read_of(value, refs):
        removed.append(path)
        return None
    parts = parse_template(value).parts
    kept = [part if isinstance(part, str) else "" if _reads(part, refs) else part.source for part in parts]
    if (text := "".join(kept)) != value:
        removed.append(path)
    return text


def _is_read_of(text: str, refs: Collection[str]) -> bool:
    """Return True if the whole text is one expression that reads one of the steps."""
    parts = parse_template(text).parts if "${" in text else ()
    return len(parts) == 1 and isinstance(parts[0], Expression) and _reads(parts[0], refs)


def _reads(expression: Expression, refs: Collection[str]) -> bool:
    references = [each.reference for each in expression if each.reference]
    return any(root in refs for reference in references for root, _key in reference.needs)


INDEX = re.compile(r"(.*)\[(\d{1,9})\]", re.DOTALL)


def _sequences_of(document: Document) -> Iterator[StepSequence]:
    """Yield all sequences of a document, empty ones included."""
    return _sequences(StepSequence("tasks", ("tasks",), as_steps(document.get("tasks"))), 0)


def _sequences(sequence: StepSequence, depth: int) -> Iterator[StepSequence]:
    yield sequence
    for index, step in enumerate(sequence.steps):
        if not isinstance(step, Mapping) or depth >= MAX_DEPTH:
            continue
        owner = reference_of(step)
        for body in _bodies_with_empty_ones(step):
            path, keys = f"{sequence.path}[{index}].{body.place}", (*sequence.keys, index, *body.path)
            inner = StepSequence(path, keys, body.steps, owner, body.label, body.is_optional)
            yield from _sequences(inner, depth + 1)


def _bodies_with_empty_ones(step: Document) -> list[Body]:
    structure = structure_of_step(step)
    found = [*structure.bodies(step), *structure.absent_bodies(step)]
    if not found and structure.flow is Flow.LOOP:
        return [body_at(step, "loopOver")]
    return found


def places_of(document: Document) -> Iterator[StepPlace]:
    """Yield the places where a step can be inserted, in the order of the document."""
    for sequence in _sequences_of(document):
        last = sequence.keys[-1]
        branch = last + 1 if isinstance(last, int) else 0
        for index in range(len(sequence.steps) + 1):
            if sequence.can_insert(index):
                after = reference_of(sequence.steps[index - 1]) if index else ""
                yield StepPlace(f"{sequence.path}[{index}]", after, sequence.owner, sequence.label, branch)


def _find_place(document: Document, path: str) -> tuple[StepSequence, int]:
    """Return the sequence of a path, and the index in it, which may be that behind the last step."""
    parts = INDEX.fullmatch(path)
    sequence = next((each for each in _sequences_of(document) if parts and each.path == parts[1]), None)
    if parts is None or sequence is None or int(parts[2]) > len(sequence.steps):
        raise NotFound(f"The definition has no place {path[:200]}.")
    return sequence, int(parts[2])


def find_step(document: Document, path: str) -> tuple[StepSequence, int]:
    """Return the sequence that contains the step of a path, and its index."""
    sequence, index = _find_place(document, path)
    if index >= len(sequence.steps) or not isinstance(sequence.steps[index], Mapping):
        raise NotFound(f"The definition has no step {path[:200]}.")
    return sequence, index


def reference_of(step: JsonValue) -> str:
    ref = step.get("taskReferenceName") if isinstance(step, Mapping) else None
    return ref if isinstance(ref, str) else ""


def references_of(document: Document) -> list[str]:
    """Return the references of all steps, repeated ones included."""
    return [spot.ref for spot in walk(document.get("tasks")) if spot.ref]


def _replace_steps(document: Document, sequence: StepSequence, steps: list[Any]) -> dict[str, Any]:
    """Return the document with other steps in a sequence. An optional sequence without steps is left out."""
    if steps or not sequence.is_optional:
        return replace_at(document, sequence.keys, steps)
    return _remove_at(document, sequence.keys)


def _remove_at(value: Any, keys: Keys) -> Any:
    key, rest = keys[0], keys[1:]
    if rest:
        return replace_at(value, (key,), _remove_at(value[key], rest))
    return {name: item for name, item in value.items() if name != key}


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
