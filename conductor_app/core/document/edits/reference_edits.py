"""Rename and remove references to steps in a document: in expressions, joins, handlers and scripts of loops."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ...expressions.json_walk import replace_texts
from ...expressions.parsing import Expression, parse_template
from ...step_structure import Document, structure_of_step
from ...step_tree import map_bodies
from ..inline_definitions import extract_definitions, restore_definitions

DOTTED = re.compile(r"(\$\{\s*(?:\$\.)?|(?<![\w$])\$\.)([^\s.,\[\]{}()'\"$]+)(?=\s*[.\[}\])&|=<>!]|\s|$)")
QUOTED = re.compile(r"((?:\$\{\s*\$?|\$)\[\s*)(['\"])([^'\"\]]*)\2(?=\s*\])")
"""The first name of an expression, or of a path from `$` inside a filter: as a plain name, and in brackets."""
SCRIPT_NAME = re.compile(r"(?<=(?<![\w$])\$\.)[\w$]+")
PYTHON_NAME = re.compile(r"(?<![\w.'\"])[^\W\d]\w*")
"""A name that a script in JavaScript reads from `$`, and a name in Python."""
LISTS_OF_REFERENCES = ("joinOn", "defaultExclusiveJoinTask")


def rename_references(document: Document, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the document with references renamed, except those of the steps themselves.

    Inline definitions of sub-workflows stay as they are: their expressions refer to the steps of the child run.
    """
    without, definitions = extract_definitions(document)
    renamed = replace_texts(without, lambda text: _rename_in_text(text, names))
    renamed = _edit_steps(renamed, lambda step: _rename_in_step(step, names))
    return restore_definitions(renamed, definitions)


def drop_references(document: Document, refs: Collection[str]) -> tuple[dict[str, Any], list[str]]:
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


def _drop_in_item(value: Any, refs: Collection[str], path: str, removed: list[str]) -> Any:
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
